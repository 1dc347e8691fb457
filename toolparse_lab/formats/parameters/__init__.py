"""Family: a tag for the function and one tag a parameter around raw text."""

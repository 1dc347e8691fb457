"""Family: JSON between delimiters, after a name, or as a whole message."""

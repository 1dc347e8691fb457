"""Family: JSON between delimiters, behind a name, or as a whole message."""

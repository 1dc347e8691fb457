"""One text read by several parsers side by side."""

"""The same numbers as HTML, Markdown, terminal text and files."""

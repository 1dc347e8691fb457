"""Protocol objects of other people, and what their parsers say as a ParseResult of ours."""

"""The push parser: raw text in pieces to a ParseResult."""

"""Protocol objects of other people, and the words of their parsers as a ParseResult of ours."""

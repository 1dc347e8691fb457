"""Text of models and files for terminals and notebooks, with escapes for characters that act there:
escape sequences, and marks that turn the direction of text."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, which has an s where it is several."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def printable(text: str) -> str:
    """Return a text for one line, line breaks written as escapes too."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """Return a text whose line breaks stay."""
    return "\n".join(map(printable, text.split("\n")))

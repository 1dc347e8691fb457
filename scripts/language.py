"""Measure the language of the pages: python scripts/language.py [PAGE …]

Prints a row per page and one for all together, per 1,000 words of prose, and exits with 1 where a
page leaves the ranges of the well-written documentations it is held to (httpx, llm, inspect-ai).
Code, tables, comments and generated parts are no prose.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent

# Figure -> the least and the most of it, per 1,000 words; `paragraph` is in words.
RANGES: Mapping[str, tuple[float, float]] = {
    "what": (0, 2.0),
    "you": (12, 40),
    "passive": (0, 15),
    "semicolons": (0, 2.0),
    "code": (8, 60),
    "paragraph": (0, 55),
    "begins": (0, 0.5),
    "words": (0, 0.5),
}
MEANING = {
    "what": "the word “what”",
    "you": "you, your, and sentences that tell you to do something",
    "passive": "forms of “be” before a participle",
    "semicolons": "semicolons",
    "code": "code blocks and examples",
    "paragraph": "mean words of the longest tenth of paragraphs",
    "begins": "sentences that begin with What, Whether, Whatever or Where",
    "words": "nobody, somebody, anew, for ever, to the letter, all the same, kin",
}

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
_GENERATED = re.compile(r"<!-- (?:made from code:|made by|measured:) .+?<!-- end -->", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NO_PROSE = re.compile(r"^[ \t]*(?:\||#|!\[|>>>|\.\.\. ).*$", re.MULTILINE)
_CODE_SPAN = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_BE = r"(?:is|are|was|were|be|been|being)"
_IRREGULAR = (
    "made|read|written|shown|told|given|taken|known|kept|sent|held|found|said|seen|done|built|"
    "left|lost|put|run|set|cut|drawn|chosen|meant|brought|thrown|split|spent|begun|spoken|drawn"
)
_PASSIVE = re.compile(rf"\b{_BE}\s+(?:\w+ly\s+|not\s+)?(?:\w+ed|{_IRREGULAR})\b", re.IGNORECASE)
_BEGINS = re.compile(r"(?:^|[.!?:]\s+)(?:What|Whether|Whatever|Where)\b", re.MULTILINE)
_WORDS = re.compile(
    r"\b(?:nobody|somebody|anew|for ever|to the letter|all the same|kin)\b", re.IGNORECASE
)
_IMPERATIVES = (
    "Run|Pass|Check|Use|Call|Set|Add|Write|Read|Install|Open|See|Give|Name|Choose|Compare|Keep|"
    "Look|Start|Import|Replace|Register|Point|Ask|Save|Store|Print|Load|Make|Build|Try|Put|Let"
)
_YOU = re.compile(
    rf"\b(?:you|your|yours|yourself)\b|(?:(?:^|[.!?:]\s+)(?:{_IMPERATIVES})\b)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Text:
    """Prose to measure: its paragraphs, and how many code blocks stand beside them."""

    paragraphs: tuple[str, ...]
    code_blocks: int


def prose_of(markdown: str) -> Text:
    """Return the prose of a page.

    >>> prose_of("# T\\n\\nRun `x`.\\n\\n```sh\\nls\\n```\\n").paragraphs
    ('Run code.',)
    """
    text = _COMMENT.sub("", _GENERATED.sub("", markdown))
    blocks = len(_FENCE.findall(text))
    text = _NO_PROSE.sub("", _FENCE.sub("\n\n", text))
    text = _LINK.sub(r"\1", _CODE_SPAN.sub("code", text))
    # An entry of a list is a paragraph of its own.
    pieces = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)", text)
    paragraphs = (" ".join(piece.split()) for piece in pieces)
    return Text(tuple(p for p in paragraphs if _WORD.search(p)), blocks)


def docstrings_of(source: str) -> Text:
    """Return the prose of a module's docstrings; each example is a code block."""
    paragraphs: list[str] = []
    blocks = 0
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        doc = ast.get_docstring(node) or ""
        examples = re.findall(r"^\s*>>> .*(?:\n(?!\s*$).*)*", doc, re.MULTILINE)
        blocks += len(examples)
        for example in examples:
            doc = doc.replace(example, "")
        paragraphs += prose_of(doc).paragraphs
    return Text(tuple(paragraphs), blocks)


def prose_of_notebook(source: str) -> Text:
    """Return the prose of a notebook; each cell of code is a code block."""
    cells = json.loads(source)["cells"]
    pages = [prose_of("".join(c["source"])) for c in cells if c["cell_type"] == "markdown"]
    code = sum(cell["cell_type"] == "code" for cell in cells)
    return joined([*pages, Text((), code)])


def joined(texts: Iterable[Text]) -> Text:
    """Return several texts as one."""
    every = list(texts)
    paragraphs = tuple(p for text in every for p in text.paragraphs)
    return Text(paragraphs, sum(text.code_blocks for text in every))


def figures(text: Text) -> dict[str, float]:
    """Return each figure of a text, and `n`, its words."""
    lengths = sorted((len(_WORD.findall(p)) for p in text.paragraphs), reverse=True)
    n = sum(lengths)
    prose = "\n".join(text.paragraphs)
    counts = {
        "what": len(re.findall(r"\bwhat\b", prose, re.IGNORECASE)),
        "you": len(_YOU.findall(prose)),
        "passive": len(_PASSIVE.findall(prose)),
        "semicolons": prose.count(";"),
        "code": text.code_blocks,
        "begins": len(_BEGINS.findall(prose)),
        "words": len(_WORDS.findall(prose)),
    }
    longest = lengths[: max(1, len(lengths) // 10)]
    return {
        **{name: 1000 * count / max(n, 1) for name, count in counts.items()},
        "paragraph": sum(longest) / max(len(longest), 1),
        "n": n,
    }


def outside(row: Mapping[str, float]) -> list[str]:
    """Return the figures of a row that leave their range."""
    return [name for name, (low, high) in RANGES.items() if not low <= row[name] <= high]


def pages() -> list[Path]:
    """Return the README and the pages of docs/ that are prose for users."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rows(paths: Sequence[Path]) -> list[tuple[str, dict[str, float]]]:
    """Return (name, figures) of each page; of all pages and all notebooks where none is named."""
    texts = {path.name: prose_of(path.read_text("utf-8")) for path in paths or pages()}
    named = [(name, figures(text)) for name, text in texts.items()]
    if paths:
        return named
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    tutorials = [(path.name, prose_of_notebook(path.read_text("utf-8"))) for path in notebooks]
    return [
        *named,
        ("all pages", figures(joined(texts.values()))),
        *((name, figures(text)) for name, text in tutorials),
        ("notebooks", figures(joined(text for _, text in tutorials))),
    ]


def docstrings() -> Text:
    """Return the prose of all docstrings of the package."""
    sources = sorted((ROOT / "toolparse_lab").rglob("*.py"))
    return joined(docstrings_of(path.read_text("utf-8")) for path in sources)


def main(arguments: Sequence[str]) -> int:
    """Print the table. Return 1 if the pages or the notebooks as a whole leave a range."""
    names = list(RANGES)
    print(f"| per 1,000 words | n | {' | '.join(names)} |\n|---|--:|{'--:|' * len(names)}")
    code = 0
    table = rows([Path(a) for a in arguments])
    if not arguments:
        table.append(("docstrings", figures(docstrings())))
    for name, row in table:
        bad = outside(row)
        cells = [f"**{row[f]:.1f}**" if f in bad else f"{row[f]:.1f}" for f in names]
        print(f"| {name} | {row['n']:.0f} | {' | '.join(cells)} |")
        code |= bool(bad) and (name in ("all pages", "notebooks") or bool(arguments))
    wanted = [f"{low:g}–{high:g}" for low, high in RANGES.values()]
    print(f"| range | | {' | '.join(wanted)} |")
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

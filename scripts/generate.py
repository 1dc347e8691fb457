"""Writes the pages of docs/ that are made from code, and such parts of others. `make docs` runs it;
a test holds the pages up to date.

python scripts/generate.py            writes what changed
python scripts/generate.py --check    writes nothing; exit code 1 names the stale pages
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
HERE = DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT))  # the checkout's own package, installed or not

from scripts.commands import command_parts, extension_parts  # noqa: E402 - it is found through the line above
from scripts.data_tables import dataset_parts  # noqa: E402
from scripts.format_tables import format_parts  # noqa: E402
from scripts.frame_tables import frame_parts  # noqa: E402
from scripts.report_tables import report_parts  # noqa: E402
from scripts.room_map import room_parts  # noqa: E402
from scripts.tables import write_table  # noqa: E402
from toolparse_lab.core.rules import CODES, RULES, Code, Rule  # noqa: E402

NOTE = "<!-- Made from code by scripts/generate.py. Do not edit: run `make docs`. -->"
_PART = re.compile(r"<!-- made from code: (.+?) -->\n.*?<!-- end -->", re.DOTALL)
# Prefix of a rule id -> the text or value that such rules change.
FAMILIES = {
    "rjson": "JSON text",
    "rxml": "XML text",
    "pythonic": "Text of calls in Python syntax",
    "barekey": "Text of objects with bare keys",
    "tags": "Text of function and parameter tags",
    "yaml": "YAML text",
    "read": "A value that is read as a call",
    "coerce": "Arguments that are brought to their schema",
}
STAGES = {
    "call": "The call as a whole",
    "response": "The response that the answer came in",
    "choice": "The answer to a forced tool choice",
    "decode": "The body of a call",
    "read": "The reading of an answer",
    "coerce": "Arguments that are brought to their schema",
    "validate": "Arguments against their schema",
    "foreign": "A protocol object of somebody else's",
    "parser": "The parser itself",
}


def by_prefix(ids: Iterable[str], titles: dict[str, str]) -> list[tuple[str, list[str]]]:
    """(title, ids) for each prefix, in the order of `titles`; raises KeyError for a prefix without
    a title."""
    groups: dict[str, list[str]] = {prefix: [] for prefix in titles}
    for i in ids:
        groups[i.partition(".")[0]].append(i)
    return [(titles[prefix], found) for prefix, found in groups.items() if found]


def _row(rule: Rule) -> list[str]:
    loss = "yes" if rule.lossless else "**no**"
    return [f"`{rule.id}`", rule.sentence, f"{loss}: {rule.why}"]


def _code_row(code: Code) -> list[str]:
    """A row of the codes; only recoveries say whether they lose anything."""
    loss = {None: "", True: "yes", False: "**no**"}[code.lossless]
    return [f"`{code.id}`", loss, code.sentence]


def rules_page() -> str:
    """Every rule and problem code."""
    lines = [
        "# Rules and problem codes",
        "",
        NOTE,
        "",
        "Look up the rule of a repair or a coercion, or the code of a problem. The parser records "
        f"every change under one of {len(RULES)} rules and every problem under one of "
        f"{len(CODES)} codes. The ids are permanent: frames and CSS classes use them.",
        "",
        "A rule is **lossless** if it guesses nothing and drops nothing of the text's meaning. "
        "The policy `safe` coerces by lossless rules only. If a lossy rule or code takes part, "
        "the verdict on the call is `repaired (lossy)`.",
        "",
        "## Rules",
        "",
        "The stage of the rules `read.…` and `coerce.…` is their prefix. All others are of the "
        "stage `repair`.",
    ]
    for title, ids in by_prefix(RULES, FAMILIES):
        table = write_table(("id", "effect", "lossless"), [_row(RULES[i]) for i in ids])
        lines += ["", f"### {title}", "", *table]
    lines += ["", "## Problem codes"]
    for title, ids in by_prefix(CODES, STAGES):
        lines += [
            "",
            f"### {title}",
            "",
            *write_table(("id", "lossless", "meaning"), [_code_row(CODES[i]) for i in ids]),
        ]
    return "\n".join(lines) + "\n"


def fill(name: str, parts: Mapping[str, str]) -> str:
    """A page written by hand, with its parts made anew. A part stands between `<!-- made from code:
    NAME -->` and `<!-- end -->`; raises KeyError for one that nobody makes, or that the page has no
    place for."""
    text = (HERE / name).read_text("utf-8")
    if missing := set(parts) - set(_PART.findall(text)):
        raise KeyError(f"{name} has no place for {', '.join(sorted(missing))}")
    return re.sub(
        _PART, lambda m: f"<!-- made from code: {m[1]} -->\n{parts[m[1]]}\n<!-- end -->", text
    )


def fill_extension(extension: str) -> str:
    """The page of an extension, with the table of its verbs."""
    return fill(f"extensions/{extension}.md", extension_parts(extension))


PAGES: dict[str, Callable[[], str]] = {
    "reference/rules.md": rules_page,
    "architecture.md": lambda: fill("architecture.md", room_parts()),
    "reference/cli.md": lambda: fill("reference/cli.md", command_parts()),
    "reports.md": lambda: fill("reports.md", report_parts()),
    "reference/logs.md": lambda: fill("reference/logs.md", dataset_parts()),
    "reference/formats.md": lambda: fill("reference/formats.md", format_parts()),
    "reference/frames.md": lambda: fill("reference/frames.md", frame_parts()),
    **{
        f"extensions/{page.stem}.md": partial(fill_extension, page.stem)
        for page in sorted((DOCS / "extensions").glob("*.md"))
        if (ROOT / "toolparse_lab" / "extensions" / page.stem).is_dir()
    },
}


def outdated() -> list[str]:
    """The pages whose file is not what the code says."""
    stale = []
    for name, make in PAGES.items():
        file = DOCS / name
        if not file.exists() or file.read_text("utf-8") != make():
            stale.append(name)
    return stale


def main(arguments: Sequence[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = outdated()
    if arguments:
        for name in stale:
            print(f"docs/{name} is out of date: run `make docs`")
        return int(bool(stale))
    for name in stale:
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(PAGES[name](), "utf-8")
        print(f"wrote docs/{name}")
    if not stale:
        print("docs/ is up to date")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

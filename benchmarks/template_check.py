"""What chat templates lose, of a folder of them: `check_template` of each.

    python benchmarks/template_check.py FOLDER            # a row for each template, then each code
    python benchmarks/template_check.py FOLDER --losses   # and every finding, to be checked by hand

A template that writes no calls of tools has no row.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import toolparse_lab as tp
from toolparse_lab.extensions.templates import TemplateReport, check_template
from toolparse_lab.extensions.templates.doctor.report import CODES


def row_of(name: str, report: TemplateReport) -> str:
    """Return the findings in a template itself, each with its line and how many values it loses."""
    findings = [
        f"{f.code} ×{len(f.losses)} (line {f.line or '?'}{', patch' if f.patch else ''})"
        for f in report.findings
        if f.kind == "template"
    ]
    return f"| {name} | {report.checked} | {'; '.join(findings) or 'nothing'} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--losses", action="store_true")
    chosen = options.parse_args(arguments)
    templates: Counter[str] = Counter()
    patches: Counter[str] = Counter()
    checked = 0
    print("| template | conversations | lost by the template |\n|---|---|---|")
    for path in sorted(chosen.folder.glob("*.jinja")):
        try:
            report = check_template(path)
        except tp.errors.UnreadableTemplate as error:
            print(f"{path.name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        checked += 1
        print(row_of(path.stem, report), flush=True)
        templates.update({f.code for f in report.findings})
        patches.update({f.code for f in report.findings if f.patch})
        if chosen.losses:
            print(f"\n{report}\n")
    print(f"\n| code | meaning | of {checked} templates | with a patch |\n|---|---|---|---|")
    for code, (_, meaning) in CODES.items():
        if templates[code]:
            print(f"| {code} | {meaning} | {templates[code]} | {patches[code] or ''} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

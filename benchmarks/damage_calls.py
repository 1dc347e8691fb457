"""The calls that `damage.py` damages: ten that the reader was tuned on, and others it never saw."""

from __future__ import annotations

from typing import Any


def _tool(name: str, required: list[str], **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": f"{name}.", "parameters": parameters}


_TEXT, _WHOLE, _NUMBER, _SWITCH = ({"type": t} for t in ("string", "integer", "number", "boolean"))
_TEXTS = {"type": "array", "items": _TEXT}
_PERSON = {"type": "object", "properties": {"name": _TEXT, "mail": _TEXT}, "required": ["name"]}
_EDIT = {"type": "object", "properties": {"line": _WHOLE, "old": _TEXT, "new": _TEXT},
    "required": ["line", "new"]}  # fmt: skip
_PLACE = {"type": "object", "properties": {"lat": _NUMBER, "lon": _NUMBER, "label": _TEXT},
    "required": ["lat", "lon"]}  # fmt: skip
TOOLS: list[dict[str, Any]] = [
    _tool("reserve_berth", ["harbour", "nights"], harbour=_TEXT, nights=_WHOLE, draught=_NUMBER,
        shore_power=_SWITCH),
    _tool("write_note", ["path", "text"], path=_TEXT, text=_TEXT, append=_SWITCH),
    _tool("find_trains", ["start", "goal"], start=_TEXT, goal=_TEXT, day=_TEXT, changes=_WHOLE,
        classes=_TEXTS),
    _tool("invite", ["title", "guests"], title=_TEXT,
        guests={"type": "array", "items": _PERSON}, remind={"type": "array", "items": _WHOLE}),
    _tool("plot", ["series"], series={"type": "array", "items": {"type": "array",
        "items": _NUMBER}}, style={"type": "object", "properties": {"colour": _TEXT,
        "width": _NUMBER, "grid": _SWITCH}}),
    _tool("set_alarm", ["hour", "minute"], hour=_WHOLE, minute=_WHOLE, label=_TEXT,
        snooze={"type": ["integer", "null"]}),
    _tool("save_file", ["file", "content"], file=_TEXT, content=_TEXT, mode=_WHOLE,
        overwrite=_SWITCH),
    _tool("run_query", ["statement"], statement=_TEXT, database=_TEXT, limit=_WHOLE,
        values={"type": "array", "items": _TEXT}),
    _tool("search_code", ["pattern"], pattern=_TEXT, folders=_TEXTS, ignore_case=_SWITCH,
        context=_WHOLE),
    _tool("edit_lines", ["file", "edits"], file=_TEXT, edits={"type": "array", "items": _EDIT},
        dry=_SWITCH),
    _tool("send_mail", ["to", "subject", "body"], to=_TEXTS, cc=_TEXTS, subject=_TEXT, body=_TEXT,
        urgent=_SWITCH),
    _tool("route", ["stops"], stops={"type": "array", "items": _PLACE}, vehicle={"type": "string",
        "enum": ["bike", "car", "foot"]}, avoid={"type": "object", "properties": {
        "tolls": _SWITCH, "ferries": _SWITCH, "max_slope": _NUMBER}}),
    _tool("shell", ["command"], command=_TEXT, timeout=_NUMBER, directory=_TEXT),
]  # fmt: skip
TUNED: list[tuple[str, dict[str, Any]]] = [
    ("reserve_berth", {"harbour": "Stavanger", "nights": 3, "draught": 1.85, "shore_power": True}),
    ("reserve_berth", {"harbour": "Port of Spain, east pier", "nights": 1}),
    ("write_note", {"path": "notes/todo.md", "text": "Buy milk, eggs and bread", "append": True}),
    ("write_note", {"path": "a/b.txt", "text": "Dear all: we meet at 10:30, as ever."}),
    ("find_trains", {"start": "Kiel", "goal": "Basel SBB", "day": "2031-05-04", "changes": 2,
        "classes": ["first", "quiet"]}),
    ("find_trains", {"start": "Gare de Lyon", "goal": "Nîmes", "classes": []}),
    ("invite", {"title": "Review", "guests": [{"name": "Ada", "mail": "ada@example.org"},
        {"name": "Kurt"}], "remind": [10, 60]}),
    ("invite", {"title": "Tea & cake", "guests": [{"name": "Emmy"}]}),
    ("plot", {"series": [[1, 2.5], [3, -4]], "style": {"colour": "teal", "width": 0.5,
        "grid": False}}),
    ("set_alarm", {"hour": 6, "minute": 45, "label": "Ferry", "snooze": None}),
]  # fmt: skip

_PYTHON = '''\
"""Tides of a harbour, from a table of constituents."""
from math import cos, radians

NAMES = {"M2": (1.23, 28.984), 'S2': (0.41, 30.0), "K1": (0.07, 15.041)}


def height(hours: float, names=None) -> float:
    """Return metres above the datum; `hours` since midnight."""
    total = 0.0
    for name, (size, speed) in NAMES.items():
        if names and name not in names:
            continue  # "skipped": not asked for
        total += size * cos(radians(speed * hours))
    return round(total, 3)


if __name__ == "__main__":
    for hour in range(0, 24, 6):
        print(f"{hour:02d}:00  {height(hour):+.2f} m", end="\\n")
'''
_TYPESCRIPT = """\
export interface Berth { id: string; free: boolean; metres?: number }

export const pick = (berths: Berth[], need = 8.5): Berth | undefined =>
  berths.filter(b => b.free && (b.metres ?? 0) >= need)
        .sort((a, b) => a.id < b.id ? -1 : 1)[0];

console.log(`picked ${pick([{ id: "A1", free: true, metres: 9 }])?.id ?? 'none'}`);
"""
_RUST = """\
use std::collections::HashMap;

fn count<'a>(words: &[&'a str]) -> HashMap<&'a str, usize> {
    let mut seen = HashMap::new();
    for word in words { *seen.entry(*word).or_insert(0) += 1; }
    seen
}

fn main() { println!("{:?}", count(&["tide", "ebb", "tide"])); }
"""
_HTML = """\
<!doctype html>
<ul class="piers" data-n='2'>
  <li><a href="/pier?id=1&lang=en">East &mdash; 8 m</a></li>
  <li style="color: #036; margin: 0">West</li>
</ul>
"""
_PROSE = " ".join(
    f"Paragraph {number}: the boat \"Gull {number}\" lay {number + 2} nights at pier {number % 7}, "
    f"and paid ({number * 3}.50 EUR); nobody asked why.\n" for number in range(1, 25)
)  # fmt: skip
_LONG_PYTHON = "\n".join(
    f"def step_{number}(state: dict) -> dict:\n"
    f'    """Do step {number}."""\n'
    f"    if state.get(\"done_{number}\"):\n"
    f"        return {{**state, 'next': [{number}, {number + 1}]}}\n"
    f"    return state\n" for number in range(1, 26)
)  # fmt: skip
_TABLE = "harbour,depth,free\n" + "".join(
    f"Pier {number},{number / 4:.2f},{'yes' if number % 3 else 'no'}\n" for number in range(1, 121)
)
HELD_OUT: list[tuple[str, dict[str, Any]]] = [
    ("save_file", {"file": "src/tides.py", "content": _PYTHON, "mode": 420, "overwrite": True}),
    ("save_file", {"file": "web/pick.ts", "content": _TYPESCRIPT}),
    ("save_file", {"file": "count.rs", "content": _RUST, "overwrite": False}),
    ("save_file", {"file": "piers.html", "content": _HTML, "mode": 384}),
    ("save_file", {"file": "log/boats.txt", "content": _PROSE}),
    ("save_file", {"file": "steps.py", "content": _LONG_PYTHON, "overwrite": True}),
    ("save_file", {"content": _TABLE, "file": "C:\\data\\piers.csv"}),
    ("run_query", {"statement": "SELECT name, COUNT(*) AS n FROM berths WHERE free = TRUE AND "
        "pier IN ('east', 'west') GROUP BY name HAVING COUNT(*) > 2 ORDER BY n DESC;",
        "database": "harbour", "limit": 50}),
    ("run_query", {"statement": 'INSERT INTO "log" (who, what) VALUES ($1, $2)',
        "values": ["Ålesund", "it's low tide"]}),
    ("search_code", {"pattern": r"def\s+(\w+)\(self,\s*\"?([a-z]{2,5})\"?", "ignore_case": False,
        "folders": ["src", "tests/unit"], "context": 3}),
    ("search_code", {"pattern": r"^[\w.+-]+@[\w-]+\.[a-z]{2,}$"}),
    ("edit_lines", {"file": "setup.cfg", "edits": [{"line": 3, "old": "a = 1", "new": "a = 2"},
        {"line": 17, "new": "[options]"}], "dry": True}),
    ("edit_lines", {"file": "app/main.go", "edits": [{"line": 88, "new":
        'fmt.Printf("%s: %d\\n", name, len(items))'}]}),
    ("send_mail", {"to": ["lin@harbour.example", "o'hara@pier.example"], "cc": [],
        "subject": "Re: tide tables, spring", "body":
        "Hello,\n\nboth tables are attached.\n\nYours"}),
    ("send_mail", {"to": ["ops@x.example"], "subject": "明日の潮 🌊", "body": "満潮は 6:40、"
        "干潮は 12:55 です。", "urgent": True}),
    ("route", {"stops": [{"lat": 60.39, "lon": 5.32, "label": "Bergen"}, {"lat": 58.97,
        "lon": 5.73}], "vehicle": "bike", "avoid": {"tolls": True, "max_slope": 7.5}}),
    ("route", {"stops": [{"lat": -33.8568, "lon": 151.2153}], "vehicle": "foot"}),
    ("shell", {"command": "grep -rn \"TODO: \" src/ | awk -F: '{print $1}' | sort -u > /tmp/t.txt",
        "timeout": 30.5}),
    ("shell", {"command": "ls", "directory": "/srv/boats and piers/2031"}),
    ("shell", {"command": "curl -s https://pier.example/api?q=a,b&x=[1] -H 'Accept: text/csv'",
        "timeout": 5}),
    ("plot", {"series": [[0, 1, 4, 9], [-1.5e3, 2e-2]], "style": {"grid": True}}),
    ("invite", {"title": "Møte: budget {draft}", "guests": [{"name": "Zoë Nkomo", "mail":
        "zoe@x.example"}, {"name": "李雷"}, {"name": "Sam, jr."}], "remind": []}),
    ("find_trains", {"start": "St. Pancras Int'l", "goal": "Bruxelles-Midi", "changes": 0}),
    ("set_alarm", {"hour": 23, "minute": 0, "snooze": 9}),
]  # fmt: skip

"""Bodies in which tags around a parameter's name are missing, or stand there twice.

`<tool_call>find_berthharbor</arg_key><arg_value>Turku</arg_value></tool_call>`: the first tag of a
key is lost, and its name stands behind the tool's. The schema says which parameters there are, so
each name is put between its own tags again.
"""

# How it works. A body is a row of tags with texts between them, walked over once. A value is the
# text between its two tags, and holds no tag of the format: where it ends is never in doubt. What
# stands before it has to be the name of a declared parameter, with the tags of a key around it in
# any number. One edit a parameter brings that to the format's own spelling.
#
# Cost: linear in the body; names are looked up, not searched for.

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ...arguments.schema.view import view_of
from ...core.toolspec import ToolSpec
from ...core.types import Edit, Span
from ...core.types.spans import make_edit
from .slots import SlotForm

RULE = "tags.key"
_MOST_TAGS = 4  # around one name


@lru_cache(maxsize=32)
def _tags(form: SlotForm) -> re.Pattern[str]:
    key, key_end, value = form.parameter
    literals = {
        "key": key,
        "key_end": key_end,
        "value": value,
        "value_end": form.parameter_end,
        "function": form.function[0],
        "function_end": form.function_end,
        "separator": form.function[1] or "\0",
    }
    return re.compile("|".join(f"(?P<{k}>{re.escape(v)})" for k, v in literals.items()))


class KeyReader:
    """Walks once over a body. `edits` stays None if anything in it is not understood."""

    def __init__(self, form: SlotForm, body: str, tools: Mapping[str, ToolSpec]) -> None:
        self._form = form
        self._body = body
        self._tools = tools
        self._name = ""
        self._repairs: list[Edit] = []
        self.edits: list[Edit] | None = self._repairs if self._read() else None

    def _read(self) -> bool:
        body = self._body
        matches = list(_tags(self._form).finditer(body))
        # The block's own tags, if there are any, are not part of the body.
        if not matches or matches[0].lastgroup != "function" or body[: matches[0].start()].strip():
            return False
        i = 0
        while i < len(matches):
            if matches[i].lastgroup != "function" or self._text(matches, i - 1).strip():
                return False
            end = self._function(matches, i)
            if end is None:
                return False
            i = end
        return not self._text(matches, len(matches) - 1).strip()

    def _text(self, matches: list[re.Match[str]], i: int) -> str:
        start = matches[i].end() if i >= 0 else 0
        end = matches[i + 1].start() if i + 1 < len(matches) else len(self._body)
        return self._body[start:end]

    def _function(self, matches: list[re.Match[str]], i: int) -> int | None:
        head = self._text(matches, i)
        word = head.strip()
        split = self._split(word)
        if split is None:
            return None
        self._name, key = split
        key_at = matches[i].end() + head.find(word) + len(word) - len(key) if key else -1
        i += 1
        if i < len(matches) and matches[i].lastgroup == "separator":
            if key or self._text(matches, i).strip():
                return None
            i += 1
        if not key:
            i = self._drop_strays(matches, i)
        while i < len(matches) and matches[i].lastgroup != "function_end":
            end = self._parameter(matches, i, key, key_at)
            if end is None:
                return None
            i, key = end, ""
            # Behind a value, and before the next tag, the next name may have lost its tags.
            text = self._text(matches, i - 1)
            key = text.strip()
            key_at = matches[i - 1].end() + text.find(key) if key else -1
        if key or i >= len(matches):
            return None
        return i + 1

    def _drop_strays(self, matches: list[re.Match[str]], i: int) -> int:
        # Closers after a name, which close nothing.
        while i < len(matches) and matches[i].lastgroup in ("key_end", "value_end"):
            if self._text(matches, i).strip():
                break
            self._repairs.append(make_edit(Span(*matches[i].span()), "", RULE))
            i += 1
        return i

    def _split(self, word: str) -> tuple[str, str] | None:
        # The tool's name and the parameter's, of which one may be "".
        if word in self._tools:
            return word, ""
        # Where one tool's name begins with another's, a word may be split in two ways.
        splits = [
            (name, word[len(name) :].strip())
            for name, tool in self._tools.items()
            if word.startswith(name) and self._knows(tool, word[len(name) :].strip())
        ]
        return splits[0] if len(splits) == 1 else None

    def _knows(self, tool: ToolSpec, key: str) -> bool:
        return key in view_of(tool.schema_json).properties

    def _parameter(self, matches: list[re.Match[str]], i: int, key: str, key_at: int) -> int | None:
        # key: its name, if that is before the tag, at offset `key_at`. Returns the number
        # of the tag after it.
        first = i
        start = key_at if key else matches[i].start()
        while i < len(matches) and (
            matches[i].lastgroup in ("key", "key_end")
            or (i == first and not key and matches[i].lastgroup == "function")
        ):
            text = self._text(matches, i).strip()
            if text and key:
                return None
            key = key or text
            i += 1
        # A value that holds a tag of the format has no certain end.
        if i + 1 >= len(matches) or i - first > _MOST_TAGS or matches[i].lastgroup != "value":
            return None
        if matches[i + 1].lastgroup != "value_end":
            return None
        if not self._knows(self._tools[self._name], key):
            return None
        tags = self._form.parameter
        own = [m.lastgroup for m in matches[first : i + 1]] == ["key", "key_end", "value"]
        if not own or start != matches[first].start():
            text = f"{tags[0]}{key}{tags[1]}{tags[2]}"
            self._repairs.append(make_edit(Span(start, matches[i].end()), text, RULE))
        return i + 2

"""Where the model's own turn ends: what follows is a conversation that it made up."""

# How it works
# ------------
# A text is looked through when something that is no text begins after it, and only then: calls are
# all that the end of a turn matters to. A token counts unless it is in code or in quotation marks.
# The header of another role, or the opener of a tool's result, ends the turn where it is. A token
# that ends a turn does so if anything but more of them follows; in families whose turns have
# several messages the assistant's own header after it goes on with the turn.
#
# Cost: one search of a text for its tokens, and nothing for a text that no call follows.

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from html import unescape

from ...formats.scan import longest_of
from ...formats.turns import PLAIN, TURNS
from .quotes import LINE_HEAD, WINDOW, sign_of
from .shown import Examples

_BARS = str.maketrans("｜", "|")


def _key(token: str) -> str:
    # The form of a token that all of its spellings share.
    plain = unescape(token).translate(_BARS).lower()
    if plain[:1] != "<" or "|" not in plain:
        return token
    plain = "".join(plain.split())
    return plain if not plain.endswith("|") else f"{plain}>"


def _loose(token: str) -> str:
    # A special token in any case, with other bars, spaces or entities.
    pattern = re.escape(token.translate(_BARS))
    pattern = pattern.replace(r"<\|", r"(?:<|&lt;)\s{0,2}[|｜]\s{0,2}")
    return pattern.replace(r"\|>", r"\s{0,2}[|｜]\s{0,2}(?:>|&gt;|(?=\s|\Z))")


def _one_of(tokens: Iterable[str]) -> str:
    special = sorted({t for t in tokens if t[:2] in ("<|", "<｜")}, key=len, reverse=True)
    exact = longest_of(t for t in tokens if t not in special)
    return f"(?i:{'|'.join(map(_loose, special))})|{exact}"


_rows = TURNS.values()
_END_TOKENS = frozenset(token for turns in _rows for token in turns.ends) - PLAIN
_HEADERS = frozenset(token for turns in _rows for token in turns.foreign) - PLAIN
_RESULT_TOKENS = frozenset(token for turns in _rows for token in turns.results)
# Token that ends a message -> the headers with which the assistant goes on with its turn.
_GOES_ON = {
    _key(end): tuple(
        token for turns in _rows if turns.several and end in turns.ends for token in turns.assistant
    )
    for end in _END_TOKENS
}
# What a file or a page begins with as well: the first token of a text, before any turn.
_BEGINS = frozenset(
    map(_key, (
        "<｜begin▁of▁sentence｜>", "<|begin_of_sentence|>", "<|startoftext|>",
        "<｜hy_begin▁of▁sentence｜>",
    ))
)  # fmt: skip
# Words of prose that mean a turn at the beginning of a line: those of a result after a call alone.
# Others may head a section, and mean a turn only with the assistant's own header after them.
_LINES = (
    "### Instruction:\n", "GPT4 Correct User:", "<user>\n", "<system>\n", "```tool_response",
    "```tool_output",
)  # fmt: skip
# What Kimi heads a result with: the id of a call, in its own form or in that of a service.
_RESULT_OF = r"## Return of (?=(?:\S+:\d+|(?:call|toolu|chatcmpl)[_-]\S+)[ \t]*\n)"
_LINES_AFTER_CALL = tuple(sorted((_RESULT_TOKENS & PLAIN) - {*_LINES, "## Return of "}))


def _first() -> str:
    # Most characters begin no token, and one look says so; of a row of brackets it takes three.
    # Special tokens are written loosely, see `_loose`.
    heads: dict[str, set[str]] = {}
    for token in _END_TOKENS | _HEADERS:
        if token[:2] not in ("<|", "<｜"):
            heads.setdefault(token[:2], set()).add(token[2])
    exact = (
        f"{re.escape(head)}[{re.escape(''.join(sorted(third)))}]"
        for head, third in sorted(heads.items())
    )
    first = re.escape("".join(sorted({head[0] for head in heads})))
    return rf"(?=[<&{first}])(?=(?:<|&[lL][tT];)\s{{0,2}}[|｜]\s{{0,2}}\w|{'|'.join(exact)})"


_FIRST = _first()
# What a text with any of them holds: most texts hold nothing of it.
_SIGN = re.compile(r"[<&\[\]✿]")
_WORDS = ("## Return of ", *(line.strip() for line in (*_LINES, *_LINES_AFTER_CALL)))
_MORE_ENDS = re.compile(rf"(?:\s*+(?:{_one_of(_END_TOKENS)}))*+\s*+")
# Families without an end have the header alone.
_LONE_HEADERS = [token for turns in _rows if not turns.ends for token in turns.foreign]


def _line_of(roles: str, headings: str) -> re.Pattern[str]:
    # The header of a role at any indent. Headings of sections have the sign of one.
    end = r"[*_]{0,2}[ \t]*(?:[:\uff1a]|$)"
    role = rf"(?:[*_#]{{1,6}}[ \t]?)?\[?(?:{roles})\]?{end}|#{{1,6}}[ \t]?(?:{headings}){end}"
    return re.compile(rf"^[ \t]*+(?:{role})", re.IGNORECASE | re.MULTILINE)


# A conversation without its tokens: the line of a user, and one of the assistant after it.
_USER_LINE = _line_of(
    "user|human|usuario|utilisateur|benutzer|nutzer|utente|пользователь|用户|用戶|ユーザー|사용자",
    "instructions?|input|question|query",
)
_OWN_LINE = _line_of(
    "assistant|ai|(?:chat)?bot|asistente|assistente|assistent|ассистент|助手|助理|アシスタント|어시스턴트",
    "response|output|answer|reply",
)
_OWN_WORDS = (
    "ssist", "ASSIST", "AI", "ai\n", "ai:", "ot:", "OT:", "sistent", "ассистент", "Ассистент", "助",
    "어시스턴트", "アシスタント", "#",
)  # fmt: skip
_LAST_LETTERS = frozenset("rnmRNM")  # the last letters of user, human and system
_FOREIGN = tuple(_HEADERS)


_PATTERNS: dict[str, Callable[[], str]] = {
    "tokens": lambda: (
        rf"{_FIRST}(?:(?P<header>{_one_of(_HEADERS)})|(?P<end>{_one_of(_END_TOKENS)}))"
        rf"|(?:^|(?<=\n))[ \t]*+(?:(?P<line>{longest_of(_LINES)}|{_RESULT_OF})"
        rf"|(?P<result>{longest_of(_LINES_AFTER_CALL)}))"
    ),
    "special": lambda: rf"{_FIRST}(?:{_one_of(_END_TOKENS | _HEADERS)})",
    "end and header": lambda: (  # right after it
        rf"{_FIRST}(?:(?:{_one_of(_END_TOKENS)})\s*+(?:{_one_of(_HEADERS)})"
        rf"|{longest_of(t for t in _LONE_HEADERS if t.startswith('<'))})"
    ),
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    # Of many tokens, compiled when a text first needs them: each takes 50 milliseconds.
    return re.compile(_PATTERNS[name]())


def is_end(token: str) -> bool:
    return token in _END_TOKENS  # of a turn or a message


def is_foreign(token: str) -> bool:
    return token.startswith(_FOREIGN)  # the header of another role, or it begins with one


def find_token(text: str) -> int:
    """Return the offset of the first special token in a text that ends or begins a turn, or -1."""
    search = _pattern("special").search
    # A search keeps all other threads waiting, and brackets take it long.
    for at in range(0, len(text), _SLICE):
        if token := search(text, at, at + _SLICE + _LONGEST):
            return token.start()
    return -1


_SLICE, _LONGEST = 2**16, 2**8  # characters that are searched at once, and of a token at most


def find_turn_end(text: str, rest: str, first: bool, called: bool, shown: int = 0) -> int | None:
    """Return the offset in a text at which the turn of the assistant ends, None if it does not.

    rest: what follows the text. first: the answer begins with it. called: a call is before it.
    shown: the end of what the text only shows.
    """
    # Each of the words has one of these signs.
    may_be_word = ":" in text or "#" in text or "`" in text
    if not _SIGN.search(text) and not (may_be_word and any(word in text for word in _WORDS)):
        return _dialogue(text)
    examples = Examples(text)
    line = seen = 0  # where the line begins, and up to where line breaks were looked for
    for token in _pattern("tokens").finditer(text):
        start, end = token.span()
        kind = token.lastgroup
        if start < shown or (kind == "result" and not called):
            continue
        line = max(line, text.rfind("\n", seen, start) + 1)
        seen = start
        before = text[max(0, start - WINDOW) : start]
        if sign_of(before, text[line : min(start, line + LINE_HEAD)]):
            continue
        if examples.holds(start):
            continue
        if kind == "header" and first and _key(token[0]) in _BEGINS and not text[:start].strip():
            continue
        if kind == "end":
            if token[0] == "</s>" and text.find("<s>", 0, start) >= 0:
                continue
            more = _MORE_ENDS.match(text, end)
            behind = more.end() if more else end
            headers = _GOES_ON.get(_key(token[0]), ())
            if headers and (text[behind : behind + 80] + rest[:80]).startswith(headers):
                continue
        return start
    return _dialogue(text)


def thought_end(text: str) -> int:
    """Return the offset in a thought at which another role begins to speak, or -1.

    A thought may mention a token: only an end with a header right after it ends the turn.
    """
    both = _pattern("end and header").search(text)
    return both.start() if both else -1


def _dialogue(text: str) -> int | None:
    # The line of a user alone, and then a call that is no user's.
    if text[-1:] == "\n":
        # The letters are looked at first: the last line may be long.
        plain = text.rstrip(" *:\n\t")
        if plain[-1:] in _LAST_LETTERS:
            last = plain.rpartition("\n")[2].strip(" *#\t").lower()
            if last in ("user", "human", "system"):
                return len(text.rstrip()) - len(last)
    for word in _OWN_WORDS:  # a generator would be a call for each
        if word in text:
            break
    else:
        return None
    user = _USER_LINE.search(text)
    if user is None or not _OWN_LINE.search(text, user.end()):
        return None
    # What is only shown ends before the call. In one fence with it they are one conversation.
    examples = Examples(text)
    return None if examples.holds(user.start()) and not examples.holds(len(text)) else user.start()

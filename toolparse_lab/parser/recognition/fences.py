"""Code fences and inline code: where the scanner is in one, which openers are only shown, and which
calls after one belong to its quotation."""

# How it works
# ------------
# Marks of quotation are found in the text before an opener (`quotes`). Backticks depend on the text
# after them as well, so `Quoting` tracks them: the text scanner reports words, line breaks and runs
# of backticks as it reads them. Markdown counts as far as models write it: fences at the beginning
# of a line, inline code within one.
#
# State: `fence` and `ticks` are the lengths of the backtick runs that opened a fence or inline
# code, 0 outside. Inline code ends with its paragraph, a fence does not. A fence with nothing
# visible before it may be the whole answer and contain a call; `_lone` tracks it:
#
#     state         word     line break   end of the fence
#     _NOT          _NOT     _NOT         _NOT        (a fence opens it where nothing was said)
#     _FENCE_LINE   stays    _INSIDE      _NOT
#     _INSIDE       _NOT     _INSIDE      _NOT
#
# Invariant: only settled text is reported, so the state never goes back, except after a failed
# speculation (`no_call`). Every answer is a function of the text up to its place.
#
# Cost: a report is a few assignments. The end of inline code is searched once for all openers in it
# (`_quote`).

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from ...core.types import Problem, Span
from ...formats.base import NEED_MORE, NeedMore, Opening
from ...formats.scan import Close
from ..state import Feed, Log, Setting
from .pages import PAGE_FENCE, begins_with_element, evidence_of_page
from .quotation import (
    EVIDENCE,
    evidence_after,
    evidence_of_lead,
    has_placeholder,
    introduces,
    is_settled,
    is_shown,
    names_call,
    reasons,
    score,
)
from .quotes import (
    LINE_HEAD,
    LONG_RUN,
    MARKS,
    WINDOW,
    goes_on_lazily,
    introduces_block,
    is_indented,
    sign_of,
)

_BLANK_LINE_OR_TICKS = re.compile(rf"\n[ \t\r]*(?=\n)|`{{1,{LONG_RUN}}}")
_MAY_BE_BLANK_LINE = re.compile(r"\n[ \t\r]*\Z")
_TOKEN = re.compile(r"<[|\uff5c]|\[[A-Z_]{4,24}\]|\]<\]")
# A fence in quotation marks, which is no fence by its place, and nothing that closes the marks.
_QUOTED_FENCE = re.compile(r"[\"'“„«]```(?!.*```[ \t]*[\"'”»])", re.DOTALL)
_NOT, _FENCE_LINE, _INSIDE = range(3)
SAID = "a call in a message that is text is an example"
# Lines of marks that open a block of what is only shown, and close it. Below a line of words they
# underline a heading.
_BLOCK_MARK = re.compile(
    r"[ \t]{0,8}(?:\w{1,20} ?= ?)?"
    r"(\"\"\"|'''|-{3,}|={4,}|\.{4,}|\+{4,}|\*{4,}|_{4,}|:{3,}|%{3,}|<{3,}|>{3,})"
    r"[ \t]*\w{0,20}[ \t\r]*\Z"
)
_LONGEST_MARK = 48
SHORTEST_ELEMENT = 3
_PAGE = 4096  # characters before an element in which others may be open
_DIFF_HEADER = re.compile(
    r"^[ \t]{0,4}(?:@@ |diff --git |--- \S|\+\+\+ \S|index [0-9a-f]{6})", re.MULTILINE
)
_DIFF_LINE = re.compile(r"[ \t]{0,4}([+-])(?![+-])[ \t]{0,8}\Z")
_TIME = (
    r"[\[(]?(?:\d{4}-\d\d-\d\d[T ])?\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,6})?Z?"
    r"(?:\s?[AaPp][Mm])?[\])]?"
)
_SPEAKER = r"[<\[]?[\w@. -]{1,32}[>\]]?"
_TRANSCRIPT = re.compile(
    rf"[ \t]*(?:[-*][ \t])?(?:\*\*)?{_TIME}[ \t]*[-\u2013|]?[ \t]*(?:\*\*)?"
    rf"(?:{_SPEAKER}(?:\*\*)?(?:[:>\uff1a]|(?<=>))(?:\*\*)?|[A-Z]{{4,8}})[ \t]*\Z"
    rf"|[ \t]*{_SPEAKER}[ \t]*[\[(]{_TIME}[\])]?[ \t]*[:>\uff1a][ \t]*\Z"
)


class Quoting:
    """Tracks what quotes the scanner's position in a text."""

    def __init__(self, setting: Setting, feed: Feed, log: Log) -> None:
        self._setting = setting
        self._feed = feed
        self._log = log
        self._allows = setting.options.quotes == "allow"
        self.spoken = False  # something visible came, be it text or a call
        self.blank = True  # only white space on this line
        self.fence = 0  # length of the run of backticks that opened a code fence
        self.ticks = 0  # length of the run that may have opened inline code in this paragraph
        self.line_at = 0  # the offset in raw where this line begins
        self.block_end = 0  # in raw, after the last inline code in as many ticks as a fence's
        self.shown: Shown | None = None
        self._fence_line = False  # still on the line that opened the fence
        self._fence_at = 0  # where the line begins that opened the fence, and the one after it
        self._inside = 0
        self._fence_shows: bool | None = None  # whether calls in it are only shown
        self._mark = ""  # of a block that is open, where its line begins, and the one after it
        self._mark_at = self._mark_end = 0
        self._words_at = -1  # where the last line with words begins
        self._lone = _NOT  # progress in a code fence with nothing visible before it
        # Between the two offsets nothing ends the inline code; the third says whether it is closed
        # after them.
        self._quote = (0, 0, False)
        # An offset in raw whose inline code is being looked for, and how far that was done.
        self._searched = (-1, 0)
        self._block = (-1, False)  # an indented line, and True in a block of code
        self._line = (-1, "")  # where a line begins, and its first characters

    @property
    def is_open(self) -> bool:
        """True if something before this place may make an example of an opener here."""
        return bool(
            self.fence or self.ticks or self._mark or (self.shown is not None and self.shown.end)
        )

    # what the text scanner reports

    def word(self) -> None:
        """Something that is not white space was read as text."""
        self.blank = False
        self.spoken = True
        if self._lone == _INSIDE:
            self._lone = _NOT

    def line(self, end: int) -> None:
        """A line break was read, which ends at an offset in raw."""
        # Inline code goes on over a line break, but as in Markdown never over a blank line: an
        # unmatched backtick must not hide the calls of all later lines.
        if self.blank and self.ticks and not self._in_code(end):
            self.ticks = 0
        if not self.blank:
            if 3 < end - self.line_at <= _LONGEST_MARK and not self.fence:
                self._note_mark(self.line_at, end)
            self._words_at = self.line_at
        self.blank = True
        self.line_at = end
        if self._fence_line:
            self._inside = end
        self._fence_line = False
        if self._lone == _FENCE_LINE:
            self._lone = _INSIDE

    def no_call(self) -> None:
        """Text like a call was text. So its fence, if it was in one, is an example."""
        self.spoken = True
        self._lone = _NOT

    def backticks(self, run: int, at: int) -> None:
        """A run of `run` backticks was read at an offset in raw."""
        begin, end, closed = self._quote
        ends_code = False
        if closed and begin <= at <= end:
            # Inside inline code that was looked through it is nothing.
            ends_code = at == end
        elif self.fence:
            # Backticks on the fence's own line: it was inline code. Else a run that is at least as
            # long closes the fence, at the beginning of a line.
            if self._fence_line or (self.blank and run >= max(3, self.fence)):
                self.fence = 0
                self._lone = _NOT
        elif run >= 3 and self.blank and self.ticks != run:
            self.fence = run
            self.ticks = 0
            self._fence_line = True
            self._fence_at, self._inside, self._fence_shows = self.line_at, at + run, None
            self._lone = _NOT if self.spoken else _FENCE_LINE
        elif not self.ticks:
            self.ticks = run
        else:
            ends_code = self.ticks == run
        if ends_code:
            self.ticks = 0
            if run >= 3:
                self.block_end = at + run
        self.word()

    # an opener, or a call outside its format, at tail[at]

    def unless_quoted(
        self, tail: str, at: int, opening: Opening, final: bool
    ) -> Opening | NeedMore | None:
        """Return the opener unless it is an example, which is noted. NEED_MORE where the text after
        it decides.
        """
        page = self.page(tail, at, opening)
        lone = self.fence and self._lone == _INSIDE and page != "page"
        if opening.kind == "reasoning" or lone:
            # A fence may be all that the model says.
            return replace(opening, speculative=True) if opening.kind == "call" else opening
        names = ["fence" if tail[at] == "`" else "delimiters"]
        is_line = False
        if not self.fence:
            closed = self.closes(tail, at, final)
            if closed is None:
                return NEED_MORE
            sign = self.sign(tail, at)
            quoted = closed or sign in ("marks", "line")
            goes_on = not quoted and self._shown_goes_on(
                at, opening.end if opening.kind == "markup" else 0
            )
            if quoted or goes_on:
                is_line = sign == "line" or (goes_on and bool(self.shown and self.shown.alone))
                return self.note_example(
                    at, opening, ["code" if closed else "quotation"], alone=is_line
                )
            names += self._signs_of_block(sign)
        names += self._frames(tail, at)
        names += filter(None, (page, self._request()))
        names += evidence_of_lead(
            self._lead(at, "indented" in names or "indented-token" in names),
            len(names) == 1 and names[0] == "delimiters",
        )
        shows = self._fence_shows if self.fence else None
        if opening.kind == "markup" and shows is None and score(names) > -2:
            # Of markup only the opener of several calls may be shown.
            rest = tail[at + opening.end :].lstrip()
            if not rest.startswith(self._setting.heads):
                return opening if final or len(rest) >= self._setting.longest_head else NEED_MORE
        if shows is None:
            shows = self._weigh(
                names, tail, at, None if not final else self._end_of(tail, at, opening)
            )
        if shows is None:
            return NEED_MORE
        if self.fence:
            self._fence_shows = shows
        if not shows:
            return replace(opening, speculative=True) if self.fence else opening
        return self.note_example(at, opening, names, alone=not self.fence)

    def shows(self, tail: str, at: int, end: int, closed: bool, final: bool) -> bool | None:
        """Return True for calls outside their format, tail[at:end], that are an example, which is
        noted; None where more text decides. closed: in inline code.
        """
        opening = Opening(end - at, whole=True)
        if self._shown_goes_on(at):
            alone = self.shown is not None and self.shown.alone
            self.note_example(at, opening, ["quotation"], alone=alone)
            return not self._allows
        sign = "marks" if closed else self.sign(tail, at)
        if sign in ("marks", "line"):
            self.note_example(at, opening, ["quotation"], alone=sign == "line")
            return not self._allows
        names = ["fence" if tail[at] == "`" else "line", *self._signs_of_block(sign)]
        names += self._frames(tail, at)
        names += filter(None, (self._request(),))
        if self._goes_on_after(at):
            names.append("lazy")
        lead = self._lead(at, sign != "")
        # What was done before is only told if words follow, as the end of the text knows.
        told = [name for name in evidence_of_lead(lead, False) if name != "past"]
        # A whole sentence leads to a call only if words follow.
        is_lead = introduces(lead)
        if is_lead:
            names += told
        if has_placeholder(tail[at:end]):
            names.append("placeholder")
        asked = self._log.echoes.asked if self._log.echoes is not None else ""
        if told and names_call(lead, tail[at:end], self._setting.tools, asked):
            names.append("named")
        more = () if is_lead else told
        shows = self._weigh(names, tail, at, end if final else None, bool(lead), more)
        if shows:
            self.note_example(at, opening, names, alone=True)
            return not self._allows
        return shows

    def _weigh(
        self,
        names: list[str],
        tail: str,
        at: int,
        end: int | None,
        waits: bool = False,
        if_words_follow: Sequence[str] = (),
    ) -> bool | None:
        # Whether a call is only shown, None where the text after it decides. names: the evidence so
        # far, to which that of the text after it is added. end: after the call in the finished
        # text, None in one that goes on. waits: what follows says something even without a sign
        # before the call. if_words_follow: evidence that counts only then.
        if not waits and all(EVIDENCE[name].weight <= 0 for name in names):
            return False
        if is_settled(names):
            return True
        if end is None:
            return None
        after = tail[end:]
        if "delimiters" in names and has_placeholder(tail[at:end]):
            names.append("placeholder")
        if self.fence:
            rest = re.search(rf"^[ \t]{{0,3}}`{{{self.fence},}}[ \t]*$", after, re.MULTILINE)
            inner = after[: rest.start()] if rest else after
            if re.search(r"\w", inner) and not inner.lstrip().startswith(self._setting.heads):
                names.append("other-code")
            after = after[rest.end() :] if rest else ""
        if "block" in names and re.search(
            rf"^[ \t]{{0,8}}{re.escape(self._mark)}[ \t]*$", after, re.MULTILINE
        ):
            names.append("closed-block")
        if "diff-line" in names:
            sign = _DIFF_LINE.match(self._line_before(at))
            other = "-" if sign and sign[1] == "+" else "+"
            if after.lstrip("\n").startswith(other):
                names.append("diff")
        if "beside-element" in names and begins_with_element(after):
            names.append("page")
        follows = evidence_after(after)
        names += follows
        if "last" not in follows:
            names += if_words_follow
        return is_shown(names)

    def _end_of(self, tail: str, at: int, opening: Opening) -> int:
        # After the call that opens at tail[at] of a finished text.
        if opening.whole:
            return at + opening.end
        closers = self._setting.closers
        if opening.kind != "call":
            # After all calls that it opens.
            ends = [m.end() for m in closers.finditer(tail[at:])] if closers is not None else []
            return at + max(ends, default=opening.end)
        envelope = (opening.owner or self._setting.protocol).envelope
        scanner = envelope.scanner(opening, self._setting.tools)
        step = scanner.scan(tail[at + opening.end :], True)
        close = step if isinstance(step, Close) else scanner.finish()
        return len(tail) if close is None else at + opening.end + close.end

    def _signs_of_block(self, sign: str) -> tuple[str, ...]:
        return ("indented-token" if sign == "token" else "indented",) if sign else ()

    def _frames(self, tail: str, at: int) -> list[str]:
        # What frames the call at tail[at], quotation aside.
        if self.fence:
            here = self._feed.base + at
            inner = self._feed.text_of(Span(max(self._inside, self._log.text_start), here))
            among = self.shown is not None and self.shown.end > self._log.text_start
            return [
                "in-fence",
                *(("other-code",) if re.search(r"\w", inner) else ()),
                *(("among",) if among else ()),
            ]
        names: list[str] = []
        if self._mark:
            names.append("block")
        line = self._line_before(at)
        if not line.strip():
            lead = self._lead(at)
            return [*names, "transcript"] if _TRANSCRIPT.match(lead) else names
        if _TRANSCRIPT.match(line):
            names.append("transcript")
        elif sign := _DIFF_LINE.match(line):
            before = self.before(at)
            lines = before[: len(before) - len(line)].rstrip().rpartition("\n")[2]
            opposite = "-" if sign[1] == "+" else "+"
            is_diff = _DIFF_HEADER.search(before) or lines.startswith(opposite)
            names.append("diff" if is_diff else "diff-line")
        return names

    def page(self, tail: str, at: int, opening: Opening) -> str:
        """Return the evidence that the opener at tail[at] is an element of a page, '' for none."""
        if not opening.name or not tail.startswith(f"<{opening.name}", at):
            return ""
        here = self._feed.base + at
        if self.fence and PAGE_FENCE.match(self._feed.text_of(Span(self._fence_at, self._inside))):
            return "page"
        start = max(self._log.text_start, here - _PAGE)
        if here - start < SHORTEST_ELEMENT:
            return ""
        return evidence_of_page(self._feed.text_of(Span(start, here)))

    def _request(self) -> str:
        echoes = self._log.echoes
        return "request" if echoes is not None and echoes.asks_for_example else ""

    def _line_before(self, at: int) -> str:
        # What is before tail[at] on its line.
        return self.before(at).rpartition("\n")[2]

    def _lead(self, at: int, is_block: bool = False) -> str:
        # The line that leads to tail[at], its fence, or its block: the rest of its own line, or the
        # one before. is_block: the block is an indented one.
        here = self._feed.base + at
        if self.fence:
            here = self._fence_at
        elif self._mark and not self._feed.text_of(Span(self._mark_end, here)).strip():
            here = self._mark_at
        start = max(self._log.text_start, here - WINDOW)
        before = self._feed.text_of(Span(start, max(start, here))).rstrip()
        while is_block and is_indented(before[before.rfind("\n") + 1 :]):
            before = before[: max(0, before.rfind("\n"))].rstrip()
        return before.rpartition("\n")[2]

    def _note_mark(self, start: int, end: int) -> None:
        # A line of marks opens a block, or closes it.
        mark = _BLOCK_MARK.match(self._feed.text_of(Span(start, end - 1)))
        if mark is None:
            return
        if self._mark == mark[1]:
            self._mark = ""
            return
        # Right below words it underlines a heading.
        before = self._feed.text_of(Span(max(self._words_at, start - WINDOW), start))
        words = before.rstrip(" \t\r")
        is_below = self._words_at >= 0 and words.endswith("\n") and not words.endswith("\n\n")
        if is_below and mark[1][0] in "-=" and not words.rstrip().endswith((":", "\uff1a", "]")):
            return
        self._mark, self._mark_at, self._mark_end = mark[1], start, end

    def note_example(
        self, at: int, opening: Opening, names: Sequence[str] = (), *, alone: bool = False
    ) -> Opening | None:
        """Note an opener as an example, so that `why` can tell where a call went. Return it if such
        calls are allowed.

        names: the evidence, none for a message that is text. alone: it says nothing of the lines
        after it.
        """
        here = self._feed.base + at
        message = SAID
        if names:  # all of a message that is text is text, up to its own end
            message = f"this call is only shown: {reasons(names)}"
            if self._allows:
                self._log.warn("call.quoted-example", message, Span(here, here + opening.end))
                return opening
            if self.shown is None:
                self.shown = Shown(self._setting, self._feed)
            self.shown.begin(here, opening, alone)
        span = Span(here, here + opening.end)
        if names:
            self._log.shown.append((span, message))
        if opening.kind == "call":
            problem = Problem("scan", "call.quoted-example", "info", message, "", span)
            self._log.problems.append(problem)
        return None

    def _shown_goes_on(self, at: int, markup: int = 0) -> bool:
        here, start = self._feed.base + at, self._log.text_start
        return self.shown is not None and self.shown.goes_on(here, start, markup)

    def _in_code(self, at: int) -> bool:
        # An offset in raw is known to be in inline code.
        begin, end, closed = self._quote
        return closed and begin <= at < end

    def closes(self, tail: str, at: int, final: bool) -> bool | None:
        """Return True if tail[at] is in inline code that is closed, None where more text decides.

        If the code stays open, the backtick before was a lone one, and the opener counts.
        """
        base = self._feed.base
        here = base + at
        if not self.ticks and not self._in_code(here):
            return False
        begin, end, closed = self._quote
        if begin <= here < end:
            return closed
        # With a backtick right before, the code is about the opener, and blank lines do not end
        # the search.
        quote_end = self._quote_end(tail, at, base, final, self.before(at).endswith("`"))
        if quote_end is None:
            return None
        end, closed = quote_end
        self._quote = (here, base + end, closed)
        return closed

    def _quote_end(
        self, tail: str, at: int, base: int, final: bool, adjacent: bool
    ) -> tuple[int, bool] | None:
        # The end in `tail` of the paragraph or its inline code, and True if it is the code's. None
        # if the tail ends before it, or in something that may go on. What was looked at in vain is
        # not looked at again when the tail has grown.
        here, searched = self._searched
        start = max(at, searched - base) if here == base + at else at
        line = None if final else _MAY_BE_BLANK_LINE.search(tail, start)
        stop = line.start() if line else len(tail)
        for match in _BLANK_LINE_OR_TICKS.finditer(tail, start):
            run = 0 if match[0][0] == "\n" else len(match[0])
            if not final and match.end() == len(tail) and run < LONG_RUN:
                stop = min(stop, match.start())
                break
            # After a body that ends with a fence of its own, the two runs are one.
            if run == self.ticks or (adjacent and run == self.ticks + 3):
                return match.start(), True
            if not run and not adjacent:
                return match.start(), False

        self._searched = base + at, base + stop
        return (len(tail), False) if final else None

    def sign(self, tail: str, at: int) -> Literal["", "line", "marks", "block", "token"]:
        """Return the sign before tail[at] that the text beginning there is a quotation.

        "block": it is in an indented block; "token": as well, and begins with a special token.
        """
        here, start = self._feed.base + at, self._log.text_start
        if here == start:
            return ""
        if at > 1:
            last = tail[at - 2 : at]
        else:
            last = self._feed.text_of(Span(max(start, here - 2), here))
        if last[-1] == "\n" and last[0] not in MARKS:
            return ""
        head = self._line_head(at)
        sign = sign_of(self.before(at), head)
        if sign or not is_indented(head):
            return sign
        if not self._in_block(head):
            return ""
        # Nobody writes a model's special tokens by hand.
        return "token" if _TOKEN.match(tail, at) else "block"

    def _in_block(self, head: str) -> bool:
        # This line, which is indented, is one of a block of code that words introduce. The text is
        # looked at backwards, to the line before the block or to the last line that was asked
        # about, so that no line is looked at for every opener after it.
        line_at = self.line_at
        last_at, verdict = self._block
        stop = max(self._log.text_start, last_at)
        if line_at == last_at:
            return verdict
        indent = len(head.expandtabs(4)) - len(head.expandtabs(4).lstrip())
        window, answer = WINDOW, None
        while answer is None:
            start = max(stop, line_at - window)
            before = self._feed.text_of(Span(start, line_at))
            answer = introduces_block(before, start == stop, indent)
            if answer is None and start == stop:
                answer = verdict and stop == last_at
            window *= 4
        self._block = line_at, answer
        return answer

    def before(self, at: int) -> str:
        # The text before tail[at] as far as it tells of quotation, nothing of an earlier call.
        here = self._feed.base + at
        return self._feed.text_of(Span(max(self._log.text_start, here - WINDOW), here))

    def _line_head(self, at: int) -> str:
        # '' where the line of tail[at] begins with something that is not text. Looked up once a
        # line: the line may be long.
        start = self.line_at
        if start < self._log.text_start:
            return ""
        line, head = self._line
        if line != start:
            head = self._feed.text_of(Span(start, min(start + LINE_HEAD, self._feed.base + at)))
            if self._feed.base + at - start >= LINE_HEAD:
                self._line = start, head
        return head

    def _goes_on_after(self, at: int) -> bool:
        # The text before a line or a fence is a quotation that goes on. So does code in as many
        # ticks as a fence's of which only a line break parts it.
        before = self.before(at)
        if goes_on_lazily(before) or _QUOTED_FENCE.search(before):
            return True
        end = self.block_end
        here = self._feed.base + at
        if not self._log.text_start < end <= here <= end + LINE_HEAD:
            return False
        gap = self._feed.text_of(Span(end, here))
        return gap.isspace() and gap.count("\n") == 1


# The last opener that was only shown, and the calls that belong to the same quotation
#
# State: `end` is after the last shown opener, `_opening` is that opener, and `alone` is True if its
# sign counts for its own line alone, as `>` does. A body may contain calls that are candidates by
# themselves, such as bare JSON: `_inner` is where one may begin, `_reach` the offset after the last
# (0: none yet). A place belongs to the quotation if the opener's body ends before it and only white
# space, separators and closers are between. After a mark of quotation words may be between as well,
# until a mark closes it or the paragraph ends.
#
# Cost: the text between two shown openers is scanned once (`_answer`).

# A mark or a backtick may end a quotation; an apostrophe inside a word does not.
_CLOSES = re.compile("[\"`\u201d\u201c\u00bb\u300d\u300f]|(?<!\\w)['\u2019]|['\u2019](?!\\w)")
# A body may begin with a code fence of its own.
_NOTHING = re.compile(r"\s*(?:`{3,}\w{1,16}[ \t\r]*\n\s*)?\Z")
_SEPARATORS = re.compile(r"[\s,;]*\Z")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


class Shown:
    """The last shown opener of one text."""

    def __init__(self, setting: Setting, feed: Feed) -> None:
        self._setting = setting
        self._feed = feed
        self.end = 0
        self._start = 0
        self.alone = False
        self._opening: Opening | None = None
        self._answer = (-1, False)
        self._inner = -1
        self._reach = 0

    def begin(self, at: int, opening: Opening, alone: bool) -> None:
        """Note an opener at an offset in raw. alone: its sign counts for its own lines alone."""
        # One inside the beginning of another call, or right after it, is a part of that.
        if at == self._inner and (opening.whole or self._reach <= self.end):
            self._reach = at + opening.end if opening.whole else 0
            return
        if self._start < at < self.end and at + opening.end <= self.end:
            self.alone = self.alone and alone
            return
        self._start, self.end = at, at + opening.end
        self._opening, self.alone = opening, alone

    def goes_on(self, at: int, start: int, markup: int) -> bool:
        """Return True if what begins at an offset in raw belongs to the last opener's quotation.

        start: where the text began, after the last segment that is no text. markup: the length of
        what is there, if it is markup: that may be the closer of what is shown.
        """
        if not start <= self._start < at:
            return False
        if at < self.end:
            return True
        if self._answer[0] != at:
            self._answer = at, self._goes_on(at, markup)
        return self._answer[1]

    def _goes_on(self, at: int, markup: int) -> bool:
        opening, size = self._opening, at - self.end
        text_of = self._feed.text_of
        if self._reach > self.end and text_of(Span(self._reach, at)).isspace():
            self._inner = at
            return True
        text = text_of(Span(self.end, at + markup))
        # The mark right after an opener ends the quotation of a name.
        if opening is None or _CLOSES.search(text[: min(1, size)]):
            return False
        # Right after the opener, as a block's first function after the block's opener.
        if not opening.whole and self._is_inner(text[:size]):
            if opening.kind == "call":
                self._inner = at
            return True
        end = self._body_end(opening, text)
        if end is None or end > size:
            return end is not None
        gap = text[end:size]
        closers = self._setting.closers
        rest = closers.sub("", gap) if closers is not None else gap
        if _SEPARATORS.match(rest):
            return not (self.alone and _BLANK_LINE.search(gap))
        return not (self.alone or _BLANK_LINE.search(gap) or _CLOSES.search(gap))

    def body_end(self, until: int) -> int:
        """Return the offset after the body of the last opener, 0 if it is open at `until`."""
        opening = self._opening
        if opening is None or not self._start < until:
            return 0
        end = self._body_end(opening, self._feed.text_of(Span(self.end, until)))
        return 0 if end is None else self.end + end

    def _is_inner(self, gap: str) -> bool:
        # Nothing but the openers of inner blocks is after an opener.
        heads = self._setting.heads
        while gap and len(gap) <= 4 * LINE_HEAD:
            if _NOTHING.match(gap):
                return len(gap) <= 2 * LINE_HEAD
            gap = gap.lstrip()
            head = max((h for h in heads if gap.startswith(h)), key=len, default="")
            if not head:
                return False
            gap = gap[len(head) :]
        return not gap

    def _body_end(self, opening: Opening, text: str) -> int | None:
        # In the text after the opener, None if the body is open.
        if opening.whole or opening.kind != "call":
            return 0
        envelope = (opening.owner or self._setting.protocol).envelope
        scanner = envelope.scanner(opening, self._setting.tools)
        step = scanner.scan(text, True)
        close = step if isinstance(step, Close) else scanner.finish()
        return None if close is None else close.end

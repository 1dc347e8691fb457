"""Text between calls: the openers in it, and the text held back as a possible call."""

# How it works
# ------------
# Text is searched for a few tokens only: heads of openers, line breaks, runs of backticks, a list's
# bracket, tokens that end a turn. The protocol's envelope decides about a head that is not quoted.
# Everything else is plain text.
#
#     token   what is read there                                     it ends the scan if
#     head    `_read_head`: an opener, by the envelope               it opens, or may go on
#     line    `_hold_line`: calls outside their format on the line   they are calls, or may be
#     ticks   `_read_backticks`: code, or a fence that is a call     it is a call, or may go on
#     list    `_read_list`: Python's calls after a sentence          they are calls, or may be
#     end     `_read_turn_end`: markup, at the end of the text       nothing else follows
#
# State: `quoting` tracks fences and inline code up to the beginning of the tail and, during a scan,
# up to the last token. `_fresh` is true while only white space came since the last segment that is
# not text: a call without delimiters may begin there. Up to `_plain_to`, an offset in raw, that was
# tried without success.
#
# Invariant: text that a scan settles is final. So everything undecided stays in the tail: the
# beginning of a head, a run of backticks that may go on, an opener that needs more text, a value
# that may be a call (see `recovery`). A scan that settles less than the tail is repeated with more
# text after it, and `quoting` knows only what was settled.
#
# Cost: one regular expression over the tail settles all but a bounded end of it, so a character is
# looked at once. Only what recovery holds back stays longer (see `state`).

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import replace

from ..core.types import Segment, Span, TextDelta, ToolCall
from ..formats.base import NEED_MORE, Decoded, NeedMore, Opening
from ..formats.json.scan import ends_in_value
from ..formats.reasoning import END_NEXT, END_STARTS, STARTS, end_at, opener_before, opens_at
from ..formats.scan import longest_of
from ..formats.turns import TURN_ENDS
from .recognition.fences import SHORTEST_ELEMENT, Quoting
from .recognition.held import Held
from .recognition.quotes import LEADS, LONG_RUN, run_length
from .recognition.recovery import Recovery
from .recognition.truncation import GivenUp, open_head
from .recognition.turns import find_turn_end
from .resolve import as_draft
from .state import Feed, Log, Setting

# Bodies that cannot be read, each of which takes as long as a call: an answer with more of them is
# an endless repetition, or made to cost.
MOST_REFUSED = 500

# Some models begin their answer with the head of a chat turn.
_CHAT_START = "<|im_start|>"
_ROLE = "assistant"
_CHAT_HEAD = re.compile(r"<\|im_start\|>\s{0,8}")
_SENTENCE = re.compile(r"[.:!?\u2026\u3002\uff1a\uff01\uff1f][\"')\]*_]{0,3}[ \t]{1,8}\Z")
_END_OF_SENTENCE = 12  # characters
# What may be before a call that lost its delimiter; a word of a sentence does not.
_MAY_BEGIN = re.compile(
    r"(?:^|\n|[>|\])}`\"'*]|[.:!?\u2026\u3002\uff1a\uff01\uff1f][\"')\]*_]{0,3}[ \t])[ \t]{0,8}\Z"
)
_SEPARATOR = re.compile(r"[;,]\s{0,40}+")
# The end of a text that goes on as JSON: a member or an item follows.
_INSIDE_JSON = re.compile(r"""(?:["'\]}\de]\s*,|["']\s*:|[\[{(])\s*\Z""")
# The tokens after one that ends a turn, and the white space after them.
_MORE_ENDS = re.compile(rf"(?:\s*+{longest_of(TURN_ENDS)})*+(?P<space>\s*+)")
_MARKER_END = re.compile(r"\[[A-Z_]{2,20}\]\s*\Z")


class TextScanner:
    """Settles the text of one parser up to the next opener.

    A step of a scan returns an Opening (the tail begins with it now), True (something was settled,
    scan again), False (wait for more text), or None (nothing of this kind is here).
    """

    def __init__(self, setting: Setting, feed: Feed, log: Log) -> None:
        self._setting = setting
        self._feed = feed
        self._log = log
        self.quoting = Quoting(setting, feed, log)
        self._fresh = True
        self._plain_to = 0
        self._no_element = -1  # where an element begins that was no call, but a part of a page
        self._again = -1  # where text begins that was no call without delimiters
        self.given_up: GivenUp | None = None  # made for the first call that is given up
        self.message_ends: tuple[str, ...] = ()  # what ends a message that is all text
        # Where the last opener of reasoning is that is prose, and up to where it was looked for.
        self._mention = self._searched = -1
        # The last places at which no reasoning begins, or ends: more text changes nothing.
        self._no_thought = self._no_end = -1
        self._ended, self._end = "", 0  # the last tail whose end was looked at, and where it opens
        self._recovery: Recovery | None = None  # made where something may be recovered: rare

    @property
    def is_plain(self) -> bool:
        # Nothing before this place can quote the opener of a call here.
        return not (self.message_ends or self.given_up is not None or self.quoting.is_open)

    # reports of the body reader

    def resume(self, ends: tuple[str, ...] = ()) -> None:
        """Text begins again after markup or reasoning.

        ends: the literals that end a message that is all text, calls in it included.
        """
        self._fresh = not ends
        if ends:
            self.message_ends = ends
            self.quoting.word()

    def resume_after_call(self) -> None:
        self._fresh = True
        self.quoting.blank = False
        self.quoting.spoken = True

    def resume_at_no_call(self) -> None:
        # The text looked like a call, and the tail begins with it again.
        self._no_element = self._feed.base
        self.quoting.no_call()
        # Held back once more it would be tried once more, for ever. As Python it was not tried.
        self._plain_to = self._feed.base + 1
        self._again = -1 if self.quoting.fence else self._feed.base

    def remember(self) -> GivenUp:
        # The openers given up in this text.
        if self.given_up is None:
            self.given_up = GivenUp(self._feed.text_of)
        return self.given_up

    def end(self, at: int) -> None:
        # At an offset in raw, where something else begins. If the beginning of a call is in the
        # text that nothing ended, what follows is inside a value.
        if self.message_ends and self._feed.tail.startswith(self.message_ends):
            self.message_ends = ()
        log, tools = self._log, self._setting.tools
        start = log.text_start
        # One character, as the line break between two calls, begins and ends nothing.
        if at > start + 1:
            text = self._feed.text_of(Span(start, at))
            if log.turn_end is None:
                # What is only shown has ends of its own.
                quoted = self.quoting.shown
                shown = quoted.body_end(at) - start if quoted and quoted.end > start else 0
                end = find_turn_end(text, self._feed.tail, start == 0, bool(log.calls), shown)
                log.turn_end = start + end if end is not None else None
            head = open_head(text, tools) if tools else None
            if head is not None:
                self.remember().begin(start + head.end, head.closers)
        log.end_text(at)

    # the loop over tokens

    def scan(self, final: bool) -> Opening | bool:
        """Settle the tail, which is not empty, up to the next opener. final: no text follows."""
        feed, setting, quoting = self._feed, self._setting, self.quoting
        tail, base = feed.tail, feed.base
        step: Opening | bool | None = None
        is_call = tail.startswith(setting.call_heads)
        if quoting.blank and setting.reads_reasoning and not is_call:
            step = self._read_thought(tail, 0, final)
            if step is not None:
                return step
        if self._fresh and base >= self._plain_to:
            # Nothing is held back on a line after a call, where most calls are. A chat turn's head
            # would go on with a bar.
            is_line = tail[:2] == "\n<" and tail[2:3] not in ("", "|") and quoting.spoken
            if not (is_line or (is_call and not setting.continues)):
                step = self._hold(tail, final)
        elif base == self._again and self._fresh:
            step = self._hold_again(tail, final)
        if step is None and quoting.line_at == base and tail[:1] in setting.line_starts:
            step = self._hold_line(tail, 0, final)
        if step is not None:
            return step
        search = setting.tokens.search
        pos = 0

        while token := search(tail, pos):
            at, end = token.span()
            if at > pos and not tail[pos:at].isspace():
                if not final and len(tail) - at < setting.longest_head:
                    longer = self._open_end(tail)
                    if pos <= longer < at:  # the token is inside a head that may still come
                        tail = tail[:longer]
                        break
                self._fresh = False
                quoting.word()
            kind = token.lastgroup
            pos = end
            if kind == "line":
                quoting.line(base + end)
                begin = tail[end : end + 1]
                may_think = begin in STARTS and setting.reads_reasoning
                if may_think and not tail.startswith(setting.call_heads, end):
                    step = self._read_thought(tail, end, final)
                if step is None and begin in setting.line_starts:
                    step = self._hold_line(tail, end, final)
            elif kind == "ticks":
                step = self._read_backticks(tail, at, end, final)
            elif kind == "head" or kind == "thought":
                step, pos = self._read_head(tail, at, final, kind == "head")
            elif kind == "list":
                step = self._read_list(tail, at, final)
                pos = at + 1
            else:
                step, pos = self._read_turn_end(tail, at, end, final)
            if step is not None:
                return step

        end = len(tail) if final else max(pos, self._open_end(tail))
        if end > pos and not tail[pos:end].isspace():
            self._fresh = False
            quoting.word()
        self._settle(end)
        return False

    def _open_end(self, tail: str) -> int:
        # Where the end of the tail may begin a head, asked at each of many signs in one tail.
        if tail is not self._ended:
            self._ended, self._end = tail, self._setting.partial_start(tail)
        return self._end

    def _read_list(self, tail: str, at: int, final: bool) -> Opening | bool | None:
        setting, quoting = self._setting, self.quoting
        if not final and len(tail) - at < setting.longest_head:
            begin = self._open_end(tail)
            if begin <= at:
                self._settle(begin)
                return False
        start = self._feed.base + at
        step = None
        if (
            not (quoting.fence or quoting.ticks or start < self._plain_to)
            and setting.recovers
            and not self.message_ends
            and (at == 0 or tail[at - 1] in " \t")  # as nearly no bracket has it
            and _SENTENCE.search(quoting.before(at)[-_END_OF_SENTENCE:])
        ):
            outcome = self._recover().python.judge(tail[at:], final, start, False, in_list=True)
            step = self._settle_unless_shown(outcome, tail, at, final)
        if step is None:
            self._fresh = False
            quoting.word()
        return step

    def _read_head(
        self, tail: str, at: int, final: bool, is_head: bool
    ) -> tuple[Opening | bool | None, int]:
        if not final and len(tail) - at < self._setting.longest_head:
            # A longer head that this one is a part of may go on after the tail.
            longer = self._open_end(tail)
            if longer < at:
                self._settle(longer)
                return False, at
        opening = self._opening(tail, at, final, is_head)
        if opening is None:
            # One of backticks is still a run of backticks, and as such it may go on. Of others only
            # the first character is passed: another head may begin inside this one.
            run = run_length(tail, at)
            if final or not run or at + run < len(tail) or run >= LONG_RUN:
                self._fresh = False
                self.quoting.word()
                if run:
                    self.quoting.backticks(run, self._feed.base + at)
                return None, at + (run or 1)
        if at:
            self._settle(at)
        return (opening if isinstance(opening, Opening) else False), at

    def _read_turn_end(
        self, tail: str, at: int, end: int, final: bool
    ) -> tuple[Opening | bool | None, int]:
        # The token tail[at:end] and those that follow are markup where nothing else follows, and
        # text elsewhere.
        run = _MORE_ENDS.match(tail, end)
        after, end = (run.end(), run.start("space")) if run else (end, end)
        rest = tail[after:]
        # What an element of HTML ends with is not the end of the answer.
        if tail.startswith("</s>", at) and "<s>" in self.quoting.before(at):
            rest = rest or "</s>"
        elif not final and any(token.startswith(rest) for token in TURN_ENDS):
            self._settle(at)
            return False, at
        if not rest:
            self._settle(at)
            return Opening(end - at, "markup"), at
        self._fresh = False
        self.quoting.word()
        return None, end

    def _settle(self, n: int) -> None:
        # Final: nothing that may still become a call may be in these `n` characters of the tail.
        if n:
            feed = self._feed
            if not self._log.silent:
                self._log.delta(TextDelta, feed.base, feed.base + n)
            feed.tail = feed.tail[n:]
            feed.base += n

    def _read_backticks(self, tail: str, at: int, end: int, final: bool) -> Opening | bool | None:
        setting, quoting, run = self._setting, self.quoting, end - at
        if not final:
            # The run may go on after the tail, or begin a head of backticks such as a fence's.
            may_go_on = end == len(tail) and run < LONG_RUN
            rest = tail[at:] if len(tail) - at < setting.longest_head else ""
            if may_go_on or (rest and any(head.startswith(rest) for head in setting.heads)):
                self._settle(at)
                return False

        # Three backticks at the beginning of a line open a fence, which may contain nothing but a
        # call.
        here = self._feed.base + at
        if (
            run >= 3
            and quoting.blank
            and not quoting.fence
            and here >= self._plain_to
            and setting.recovers
            and not self.message_ends
        ):
            outcome = self._recover().judge_fence(tail[at:], final, here, not quoting.spoken)
            step = self._settle_unless_shown(outcome, tail, at, final)
            if step is not None:
                return step

        quoting.backticks(run, here)
        self._fresh = False
        return None

    # openers

    def _opening(self, tail: str, at: int, final: bool, is_head: bool) -> Opening | NeedMore | None:
        # None if the head at tail[at] is text, NEED_MORE where that depends on text still to come.
        # is_head: False for the closer of reasoning.
        setting = self._setting
        quoting = self.quoting
        may_end = tail[at] in END_STARTS and tail[at + 1 : at + 2] in END_NEXT
        if may_end and setting.reads_reasoning and not quoting.fence:
            closer = self._thought_end(tail, at, final)
            if closer is not None:
                return closer
        if not is_head or self._log.refused >= MOST_REFUSED:
            return None
        opening = setting.protocol.envelope.open(tail, at, final, setting.tools)
        if not isinstance(opening, Opening):
            return opening
        if opening.kind != "call" and not opening.end:
            return None  # it would be found again for ever
        # A message that is all text only mentions calls; the header of the next one ends it.
        ends = self.message_ends
        if ends and opening.kind == "call" and not tail.startswith(ends, at):
            quoting.note_example(at, opening)
            return None
        if opening.name and self._is_word(tail, at, opening):
            opening = replace(opening, speculative=True)
        if (opening.lone or opening.speculative) and self._is_no_call(at, opening):
            return None
        if self._feed.base + at == self._no_element:
            return None
        if opening.kind == "reasoning":
            return opening
        if self._begins_line(tail, at) and not (
            opening.name
            and self._feed.base + at - self._log.text_start >= SHORTEST_ELEMENT
            and quoting.page(tail, at, opening)
        ):
            return opening
        meant = quoting.unless_quoted(tail, at, opening, final)
        if not isinstance(meant, Opening) or meant is opening:
            return meant
        # A call in a fence that was given back would be given back for ever.
        return None if self._is_no_call(at, meant) else meant

    def _begins_line(self, tail: str, at: int) -> bool:
        # True if the opener at tail[at] begins its line and nothing before it can quote it, so that
        # the longer look at quoting is not needed.
        quoting = self.quoting
        if tail[at] == "`" or quoting.is_open:
            return False
        here, start = self._feed.base + at, self._log.text_start
        if here - start < 2:  # at most a line break since the last call
            return here == start or quoting.line_at == here
        return at > 1 and tail[at - 1] == "\n" and tail[at - 2] not in LEADS

    def _is_word(self, tail: str, at: int, opening: Opening) -> bool:
        # A tag named after a tool in a sentence is a word, unless a call comes of it.
        if self._feed.base + at + 1 == self._plain_to:
            # It was given back, and the text before it is a segment by now.
            return tail[at : at + opening.end].strip() == f"<{opening.name}>"
        if at == 0 and self._feed.base == self._log.text_start:
            return False
        if (at and tail[at - 1] != " ") or tail[at : at + opening.end] != f"<{opening.name}>":
            return False
        before = self.quoting.before(at)[-2:]
        return before[-1:] == " " and before[:1].isalnum()

    def _read_thought(self, tail: str, at: int, final: bool) -> Opening | bool | None:
        # An opener of reasoning on the line that begins at tail[at]. It counts outside code fences,
        # unless it is the format's own, or the tag of a tool.
        quoting, setting = self.quoting, self._setting
        here = self._feed.base + at
        if quoting.fence or here == self._no_thought:
            return None
        found = opens_at(tail, at, final, not quoting.spoken)
        if found is None:
            self._no_thought = here
            return None
        if isinstance(found, NeedMore):
            self._settle(at)
            return False
        start, opening = found
        for place in {at, start}:
            if tail.startswith(setting.heads, place):
                own = setting.protocol.envelope.open(tail, place, final, setting.tools)
                if isinstance(own, NeedMore):
                    self._settle(at)
                    return False
                if own is not None and (opening.tag or own.kind == "reasoning"):
                    return None
        self._settle(start)
        return opening

    def _thought_end(self, tail: str, at: int, final: bool) -> Opening | NeedMore | None:
        # The closer of reasoning that was begun in the prompt.
        here = self._feed.base + at
        end = None if here == self._no_end else end_at(tail, at, final)
        if end is None:
            self._no_end = here
            return None
        if isinstance(end, NeedMore):
            return end
        # After an opener that is prose, so is the closer.
        start = max(self._searched, self._log.text_start)
        mention = opener_before(self._feed.text_of(Span(start, here)), tail[at : at + end])
        self._searched = here
        if mention >= 0:
            self._mention = start + mention
        if self._mention >= self._log.text_start:
            return None
        closed = self.quoting.closes(tail, at, final)
        if closed is not False:
            return NEED_MORE if closed is None else None
        return None if self.quoting.sign(tail, at) else Opening(end, "markup")

    def _is_no_call(self, at: int, opening: Opening) -> bool:
        # The speculative opener at tail[at] was tried before, or is in other JSON. Or a call
        # without its delimiter is inside a sentence.
        if opening.lone:
            return _MAY_BEGIN.search(self.quoting.before(at)) is None
        if self._feed.base + at < self._plain_to:
            return True
        if opening.end:
            return False
        before = self.quoting.before(at)
        line = before.rpartition("\n")[2]
        if line.strip(" \t;,") and (
            _MAY_BEGIN.search(line) is None
            or any(line.count(a) > line.count(b) for a, b in ("()", "[]", "{}"))
            or self._last_word(before) in self._setting.tools
        ):
            return True
        return _INSIDE_JSON.search(before) is not None

    # calls without an opener, and calls outside their format

    def _hold(self, tail: str, final: bool) -> Opening | bool | None:
        # The tail, of which only white space is before the candidate, may begin a call without its
        # delimiters. Returns its opener, or the decision of recovery.
        stripped = tail.lstrip()
        if not stripped:
            return None
        head = _CHAT_HEAD.match(stripped) if stripped[0] == "<" else None
        if head is not None:
            stripped = stripped[head.end() :]
            # What follows may be a role, and the head a part of a format's opener.
            if _ROLE.startswith(stripped[: len(_ROLE)]):
                return None if final or stripped.startswith(_ROLE) else False
        elif not final and _CHAT_START.startswith(stripped):
            return False
        lead = len(tail) - len(stripped)
        setting, first = self._setting, not self.quoting.spoken
        envelope, tools = setting.protocol.envelope, setting.tools
        opening: Opening | NeedMore | None = None
        begin = 0
        if setting.speculates if first else setting.repeats:
            # An undelimited format competes only where the whole answer begins like it. After a
            # call another one may begin with its name, and a separator may be between them.
            if first:
                opening = envelope.speculates(stripped)
                opening = envelope.resumes(stripped, tools) if opening is None else opening
            elif stripped[0] != "<":
                separator = _SEPARATOR.match(stripped)
                begin = separator.end() if separator else 0
                rest = stripped[begin:]
                opening = envelope.resumes_again(rest, tools) if rest else NEED_MORE
            if isinstance(opening, NeedMore):
                return None if final else False
            if opening is not None:
                self._settle(lead + begin)
                return opening

        # No JSON and no name of a tool begins like this, and nearly every opener does.
        if stripped[0] == "<" or stripped.startswith(setting.bracket_heads):
            return None
        if not setting.recovers or self.message_ends:
            return None
        # Right behind a call, a list of calls may have the closer without the opener.
        again = bool(self._log.segments) and self._log.segments[-1].kind in ("call", "recovered")
        outcome = self._recover().judge(stripped, final, self._feed.base + lead, first, again)
        # A head may begin with the white space before the candidate.
        if isinstance(outcome, NeedMore) and self._open_end(tail) < lead:
            return False
        return self._settle_outcome(outcome, lead)

    def _hold_again(self, tail: str, final: bool) -> bool | None:
        # The answer was no call without delimiters as a whole, but may be Python's calls with
        # something next to them.
        setting = self._setting
        if not setting.recovers or self.message_ends or tail[0] not in setting.python_starts:
            return None
        outcome = self._recover().python.judge(tail, final, self._feed.base, True)
        if not isinstance(outcome, NeedMore):
            self._again = -1
        return self._settle_outcome(outcome, 0)

    def _hold_line(self, tail: str, pos: int, final: bool) -> bool | None:
        # The line may be nothing but a known tool's calls: it begins like them.
        setting, quoting, char = self._setting, self.quoting, tail[pos]
        if self.message_ends:
            return None
        name = None
        if char not in setting.value_starts:
            name = setting.name_heads.match(tail, pos, final)
            if name is None:
                return None
        start = self._feed.base + pos
        if quoting.fence or start < self._plain_to or start == self._log.text_start:
            return None
        if isinstance(name, NeedMore):
            self._settle(pos)
            return False
        if _INSIDE_JSON.search(quoting.before(pos)):
            return None
        outcome = self._recover().judge(tail[pos:], final, start, False)
        return self._settle_unless_shown(outcome, tail, pos, final)

    def _settle_unless_shown(
        self, outcome: Held | NeedMore | None, tail: str, at: int, final: bool
    ) -> bool | None:
        # Of the line or fence at tail[at], which is text if a call is only shown there.
        if isinstance(outcome, Held) and outcome.body is not None:
            closed = self.quoting.closes(tail, at, final)
            if closed is None:
                outcome = NEED_MORE
            else:
                shows: bool | None = self.is_of_other_tool(outcome.decoded, self.quoting.before(at))
                if not shows:
                    shows = self.quoting.shows(tail, at, at + outcome.end, closed, final)
                if shows is None:
                    outcome = NEED_MORE
                elif shows:
                    outcome = Held(outcome.end)
        return self._settle_outcome(outcome, at)

    def is_of_other_tool(self, calls: Iterable[Decoded | ToolCall], before: str) -> bool:
        # The last line before some calls ends with the name of another tool: the JSON after it is
        # what that tool was given, and no call of the tool that it names.
        name = self._last_word(before)
        return name in self._setting.tools and any(call.name != name for call in calls)

    def _last_word(self, before: str) -> str:
        line = _MARKER_END.sub("", before.rstrip().rpartition("\n")[2])
        words = line.rstrip(" \t`*\"':(=>-").split()
        if not words:
            return ""
        word = re.split(r"[<>|\]\[{`*\"'.#(=]", words[-1])[-1]
        # An opener without a bracket is glued to the name: `functoolsget_tide`.
        heads = (head for head in self._setting.heads if word.startswith(head))
        return word.removeprefix(max(heads, key=len, default=""))

    def _recover(self) -> Recovery:
        if self._recovery is None:
            s = self._setting
            self._recovery = Recovery(s.resolver, s.heads, s.name_heads, s.python_starts)
        return self._recovery

    def _settle_outcome(self, outcome: Held | NeedMore | None, lead: int) -> bool | None:
        # Of the text after the first `lead` characters. Calls become a segment of the kind
        # 'recovered'. Plain text is left to the next scan, which does not ask recovery again.
        if outcome is None:
            return None
        self._settle(lead)
        if isinstance(outcome, NeedMore):
            return False
        feed, log = self._feed, self._log
        start, end = feed.base, feed.base + outcome.end
        if outcome.body is None:
            # One that breaks off goes on to the end of the text.
            self._plain_to = end
            stop = end if outcome.end > 1 else sys.maxsize
            self.remember().suspect = start + outcome.lead, stop, ends_in_value
            return True
        self.end(start)
        if log.message_end is not None and log.turn_end is None:
            log.turn_end = log.message_end[0]
        segment = Segment("recovered", Span(start, end), outcome.body)
        calls = self._recover().calls(
            outcome, outcome.body.start, segment, len(log.segments), len(log.calls)
        )
        if self.given_up is not None and self.given_up.quotes(start, end):
            calls = tuple(map(as_draft, calls))
        # A list is one in any format.
        log.call(segment, None, calls, "[")
        feed.take(outcome.end)
        self._fresh = True
        self.quoting.spoken = True
        return True

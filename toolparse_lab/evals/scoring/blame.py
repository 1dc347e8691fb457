"""Which layer broke an answer: one verdict over everything that was recorded of it."""

# How it works. Each rule looks at some of the witnesses and gives a verdict or None; the first
# verdict counts. They go from what cannot be doubted (our own failure, an error instead of an
# answer) by what the parts of a response say of each other to what is left: if the text itself is
# wrong and nothing says that anybody touched it, the model wrote it.

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...core.errors import ToolparseError
from ...core.types import Blame, Evidence, Layer, ParseResult, ServerReading, ToolCall
from ...core.types.blame import TOKENS_TELL
from ...core.types.call import is_held_back
from ...core.types.server import (
    ESCAPED,
    IN_CONTENT,
    NO_CALL,
    ONLY_REASONED,
    UNREAD_PART,
    explain_blame,
)
from ...core.values import read_strict
from ...core.values.wording import share
from ...entry.parse import parse_text
from ...formats.auto import may_hold_call
from ...middleware.flow import is_unlifted, recorded_tokens
from ...middleware.flow.reading import internal_problem_of
from ...runner.exchange.details import sampling_of, token_details
from ...runner.exchange.types import OF_TOKENS, Completion
from ...views.show import shorten
from ..cases.case import Case
from .outcomes import SUCCESSES
from .score import Score

_SHOWN = 200
_UNLIKELY = -4.6  # log probability of a token that only heat takes where another is sure: 1 %
_SURE = 0.3  # nats of entropy; about 95 % for one token
_WHOLE = 0.8  # of the tokens that were paid for
_SAMPLING_TELLS = "the same request at temperature 0, or on another quantisation"
# Error kinds of the runner -> the layer.
_OF_ERROR: Mapping[str, Layer] = {
    "connection": "transport",
    "timeout": "transport",
    "cut_stream": "transport",
    "auth": "client",
    "not_found": "client",
    "bad_request": "client",
    "rate_limited": "server",
    "context_overflow": "client",
    "refused": "server",
    "server_error": "server",
}
_TEMPLATE_ERROR = re.compile(
    r"(?i)chat[_ ]?template|jinja|template\s?error|undefinederror|roles must alternate"
    r"|does not support (?:tools|tool calling|function calling)|render.{0,20}template"
    r"|is undefined|has no attribute|no filter named|apply template|strftime_now"
)
# The provider says that the model wrote what cannot be, or that it is itself at its limit.
_MODEL_ERROR = re.compile(
    r"(?i)attempted to call tool|not in request\.tools|malformed.{0,3}function.{0,3}call"
)
_SERVER_ERROR = re.compile(
    r"(?i)internal (?:server )?error|upstream|overloaded|unhandled|traceback|\b5\d\d\b|capacity"
)
_GATEWAY_ERROR = re.compile(
    r"(?i)bad gateway|gateway time-?out|service (?:temporarily )?unavailable"
)
_PARSER_ERROR = re.compile(
    r"(?i)failed to parse|tool[_ -]?(?:call[_ -]?)?parser|parse tool call|grammar|tool_use_failed"
    r"|error parsing|unexpected (?:empty|token|end)|enable-auto-tool-choice|failed_generation"
)
_ARGUMENTS_ERROR = re.compile(r"(?i)pars(?:e|ing) (?:tool call )?arguments")
_SIGNS_AGAIN = re.compile(r"([^\w\s\-=_*#.~])\1{7,}\s*$")
_CLOSER = re.compile(r"\s*</(\w+)>")
_LAST_CLOSER = re.compile(r"</(\w+)>\s*$")
_KIMI_ID = re.compile(r"<\|tool_call_begin\|>\s*[\w.\-]+:\d+")
_FAILED_GENERATION = re.compile(r"failed_generation\W{1,12}(.+)", re.S)
_END_TOKEN = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|return|endoftext|end_of_text|user|observation|im_start)\|>"
    r"|</s>|<end_of_turn>|<\uff5cend\u2581of\u2581sentence\uff5c>|<\|END_OF_TURN_TOKEN\|>"
)
_OTHER_ENDS = ("content_filter", "SAFETY", "refusal", "guardrail_intervened")
_SPECIAL_IN_NAME = re.compile(r"<\|?[\w\u2581|\uff5c]+\|?>|<\|")
_SEVERAL_OBJECTS = re.compile(r"\}\s*\{\s*[\"}]")
_HOT = 1.5  # temperature above which text falls apart in every model
_SHORTEST_LOOP = 120  # characters at the end of a text
_LOOPS = 6
# No tokenizer needs so few tokens: English has about four characters in one.
_CHARACTERS_A_TOKEN = 12


def blame_of(
    case: Case,
    completion: Completion | None,
    result: ParseResult | None,
    score: Score | None,
    *,
    tool_choice: Any = "auto",
) -> Blame:
    """Return which layer broke an answer, weighed over all that was recorded of it.

    tool_choice: of its arm. The layer is `none` for an answer in which nothing is wrong, and
    `cannot_tell` where several may be; `would_tell` says what to record then.
    """
    if completion is None:
        return _says("Cannot be told: nothing is recorded.", tells="an answer")
    if result is not None and score is not None and _is_sound(completion, result, score):
        return Blame()
    witnesses = _Witnesses(case, completion, result, score, tool_choice)
    for rule in _RULES:
        verdict = rule(witnesses)
        if verdict is not None:
            return verdict
    return Blame()


# Finish reasons of an answer that ended by itself.
_BY_ITSELF = frozenset((None, "stop", "end_turn", "eos", "stop_sequence"))
# The members of a recorded response that no rule asks for.
_NO_WITNESSES = frozenset(("id", "model", "provider", "endpoint", "usage", "headers", "sent"))


def _is_sound(completion: Completion, result: ParseResult, score: Score) -> bool:
    # A text with nothing but clean calls, all of them right, that ended by itself, and beside which
    # nothing is recorded that could say otherwise: no rule below has a verdict on it.
    if score.outcome not in SUCCESSES and score.outcome != "ungraded":
        return False
    if not result.calls or result.problems or any(c.problems or not c.ok for c in result.calls):
        return False
    paid = completion.completion_tokens
    return (
        completion.ok
        and not completion.cut
        and completion.endpoint_kind != "native_tools"
        and completion.finish_reason in _BY_ITSELF
        and _NO_WITNESSES.issuperset(completion.response or ())
        and (paid is None or _limit_of(completion) is None)
    )


def _limit_of(completion: Completion) -> int | None:
    limit = (sampling_of(completion.request, completion.response) or {}).get("max_tokens")
    return limit if isinstance(limit, int) else None


_LAYERS: Mapping[str, Layer] = {
    "Client": "client", "Model": "model", "Reader": "reader", "Sampler": "sampler",
    "Server": "server", "Template": "template", "Transport": "transport",
}  # fmt: skip


def _says(why: str, evidence: tuple[Evidence, ...] = (), code: str = "", tells: str = "") -> Blame:
    # The first word of a verdict is its layer; "Cannot be told" has none.
    return Blame(why, _LAYERS.get(why.partition(" ")[0], "cannot_tell"), code, evidence, tells)


@dataclass(frozen=True)
class _Witnesses:
    case: Case
    completion: Completion
    result: ParseResult | None
    score: Score | None
    tool_choice: Any

    @property
    def outcome(self) -> str:
        return self.score.outcome if self.score is not None else ""

    @property
    def is_native(self) -> bool:
        return self.completion.endpoint_kind == "native_tools"

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        calls = self.result.calls if self.result is not None else ()
        return tuple(c for c in calls if c.verdict != "echoed" and not is_held_back(c))

    @cached_property
    def left(self) -> tuple[ToolCall, ...]:
        # The calls in the content, which a reader of the provider's own calls does not look for.
        if not self.is_native or not self.content.strip():
            return self.calls
        calls = _calls_in(self.content, self.case)
        return tuple(call for call in calls if call.verdict != "echoed")

    @cached_property
    def codes(self) -> set[str]:
        return {p.code for p in self.result.all_problems()} if self.result is not None else set()

    @cached_property
    def failed(self) -> bool:
        # Also where nothing was called: an empty answer was lost at some layer.
        if self.outcome == "ungraded":
            return self.result is not None and not self.result.ok
        return bool(self.outcome) and self.outcome not in SUCCESSES

    @cached_property
    def message(self) -> Mapping[str, Any]:
        # Content and calls as the provider gave them. A text is its own content.
        if not self.is_native:
            return {"content": self.completion.raw}
        message = _json(self.completion.raw)
        return message if isinstance(message, Mapping) else {}

    @property
    def content(self) -> str:
        content = self.message.get("content")
        return content if isinstance(content, str) else ""

    @cached_property
    def functions(self) -> list[tuple[str, str]]:
        # Name and argument text of the provider's own calls.
        calls = self.message.get("tool_calls")
        found = []
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, Mapping) else None
            if isinstance(function, Mapping):
                found.append(
                    (str(function.get("name") or ""), str(function.get("arguments") or ""))
                )
        return found

    @cached_property
    def sampling(self) -> Mapping[str, Any]:
        return sampling_of(self.completion.request, self.completion.response) or {}

    @property
    def temperature(self) -> float:
        value = self.sampling.get("temperature")
        return float(value) if isinstance(value, (int, float)) else 0.0

    @property
    def limit(self) -> int | None:
        return _limit_of(self.completion)

    @property
    def at_limit(self) -> bool:
        # Some servers say another reason for a call that the limit cut.
        paid = self.completion.completion_tokens
        return self.completion.finish_reason in (
            "length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length",
        ) or (self.limit is not None and paid is not None and paid >= self.limit)  # fmt: skip

    @property
    def choice(self) -> str:
        # Of its arm, else of the request. An object that names a tool as its JSON.
        choice = self.tool_choice
        if choice == "auto":
            params = self.completion.request.get("params")
            extra = params.get("extra_body") if isinstance(params, Mapping) else None
            sent = (self.completion.response or {}).get("sent")
            bodies = [body for body in (sent, params, extra) if isinstance(body, Mapping)]
            said = (_choice_in(body.get("tool_choice")) for body in bodies)
            choice = next((each for each in said if each is not None), choice)
        return choice if isinstance(choice, str) else json.dumps(choice)

    @property
    def has_tokens(self) -> bool:
        return self.completion.fidelity in OF_TOKENS

    @cached_property
    def drawn(self) -> str:
        # Of the provider's own calls, the text that the model drew, where its tokens say it.
        return drawn_beside(self.completion)

    @cached_property
    def drawn_calls(self) -> tuple[ToolCall, ...]:
        calls = _calls_in(self.drawn, self.case) if self.drawn else ()
        return tuple(call for call in calls if call.verdict != "echoed")

    @property
    def ends_with_call(self) -> bool:
        return self.completion.finish_reason in ("tool_calls", "function_call", "tool_use")

    @property
    def reasoning_tokens(self) -> int:
        return token_details(self.completion.response)["reasoning_tokens"] or 0

    def quoted(self, where: str, text: str, span: tuple[int, int] | None = None) -> Evidence:
        start, end = span or (None, None)
        return Evidence(where, shorten(text, _SHOWN), start, end)

    def finish(self) -> tuple[Evidence, ...]:
        reason = self.completion.finish_reason
        return () if reason is None else (Evidence("finish_reason", reason),)

    def paid(self) -> Evidence:
        c = self.completion
        words = f"{c.completion_tokens} completion tokens"
        if self.reasoning_tokens:
            words += f", {self.reasoning_tokens} of them reasoning"
        return Evidence("usage", words)


def _shown(calls: Sequence[tuple[str, str]]) -> tuple[Evidence, ...]:
    # The first of the server's calls: names and argument texts.
    return tuple(Evidence("tool_calls", f"{n}({shorten(a, _SHOWN)})") for n, a in calls[:3])


def drawn_beside(completion: Completion) -> str:
    """Return the text that a model drew for an answer of the provider's own calls, as its recorded
    tokens say it. '' where they do not, or only in part.
    """
    if completion.endpoint_kind != "native_tools":
        return ""
    tokens = recorded_tokens(completion)
    if tokens is None or tokens.raw:
        return ""
    # A server that holds something back may drop its log probabilities, too.
    paid = completion.completion_tokens
    return tokens.drawn if paid is None or len(tokens) >= _WHOLE * paid else ""


def _our_failure(w: _Witnesses) -> Blame | None:
    problem = internal_problem_of(w.result)
    if problem is None and w.outcome != "reader_error":
        return None
    why = problem.message if problem is not None else (w.score.detail if w.score else "")
    return _says(
        "Reader failed: the answer is there, and the parser that read it broke.",
        (w.quoted("problem", why),),
    )


def _held_back(w: _Witnesses) -> Blame | None:
    if w.outcome != "held_back" or w.result is None:
        return None
    shown = [call for call in w.result.calls if is_held_back(call)]
    return _says(
        "Reader held it back: it takes the call for one that the answer only shows.",
        tuple(w.quoted(*_place(w, call)) for call in shown[:3]),
    )


def _error(w: _Witnesses) -> Blame | None:
    c = w.completion
    if c.ok:
        return None
    message = c.error_message or ""
    evidence = (Evidence("error", f"{c.error_kind or 'error'}: {shorten(message, _SHOWN)}"),)
    if _TEMPLATE_ERROR.search(message):
        return _says("Template failed: the request was not rendered.", evidence)
    if _MODEL_ERROR.search(message):
        return _says("Model wrote what the provider refused.", evidence)
    if _PARSER_ERROR.search(message):
        generation = _FAILED_GENERATION.search(message)
        if generation is not None and not _is_readable(generation[1], w.case):
            why = "Model broke it: the server refused what it wrote, and no call can be read in it."
            return _says(why, evidence)
        if generation is None and _ARGUMENTS_ERROR.search(message):
            return _says(
                "Cannot be told: the server could not read the arguments, and does not quote them.",
                evidence,
                "parser_failed",
                TOKENS_TELL,
            )
        why = "Server failed: its parser gave an error."
        return _says(why, evidence, "parser_failed")
    layer = _OF_ERROR.get(c.error_kind or "", "")
    status = (c.response or {}).get("status_code")
    if _GATEWAY_ERROR.search(message) or status in (502, 503, 504):
        layer = "transport"
    elif c.error_kind in (None, "other", "rate_limited") and _SERVER_ERROR.search(message):
        layer = "server"
    if not layer:
        return _says(
            "Cannot be told: the error says too little.", evidence, tells="the server's own log"
        )
    words = {
        "transport": "Transport broke it: the connection failed before the answer was whole.",
        "client": "Client broke it: the request was not accepted.",
        "server": "Server failed: it gave an error instead of an answer.",
    }
    if c.error_kind == "rate_limited" and layer == "server":
        return _says("Server turned it away: a rate or a quota was used up.", evidence)
    return _says(words[layer], evidence)


def _calls_in(text: str, case: Case) -> tuple[ToolCall, ...]:
    # In any format; none where no reader takes the text.
    if not may_hold_call(text):
        return ()
    try:
        found = parse_text(text, "auto", case.tools).calls
    except ToolparseError:
        return ()
    return tuple(call for call in found if not is_held_back(call))


def _is_readable(text: str, case: Case) -> bool:
    return any(call.ok for call in _calls_in(text, case))


def _ended(w: _Witnesses) -> Blame | None:
    reason = w.completion.finish_reason or ""
    if w.completion.cut:
        why = "Transport broke it: the stream ended without a finish part."
        chunks = Evidence("chunks", f"{len(w.completion.chunks)} pieces, none of them the last")
        return _says(why, (chunks,))
    if reason in _OTHER_ENDS and reason != "refusal":
        return _says("Server stopped it: a filter ended the answer.", w.finish())
    if _MODEL_ERROR.search(reason):
        return _says("Model wrote what the provider could not read.", w.finish())
    return None


def _nothing_came(w: _Witnesses) -> Blame | None:
    c = w.completion
    if w.content.strip() or w.functions or c.finish_reason in _OTHER_ENDS:
        return None
    if c.completion_tokens is None and w.failed and not w.ends_with_call and not w.at_limit:
        return _says(
            "Cannot be told: nothing came, and nobody counted the tokens that were paid for.",
            w.finish(),
            tells="the completion tokens",
        )
    if (c.completion_tokens or 0) <= 1 or (c.reasoning.strip() and not w.ends_with_call):
        return None
    rest = (c.completion_tokens or 0) - w.reasoning_tokens
    evidence = (w.paid(), *w.finish())
    if w.at_limit:
        why = "Client set the limit: all tokens went before there was text or a call."
        return _says(why, evidence, "token_limit")
    if w.reasoning_tokens and rest <= 3:
        return _says(
            "Cannot be told: all tokens are reasoning, and the answer ends with it.",
            evidence,
            "all_output_lost",
            TOKENS_TELL,
        )
    if c.reasoning.strip():
        return _dropped(w)
    why = "Server lost it: tokens were paid for, and neither text nor a call came."
    return _says(why, evidence, "all_output_lost")


def _limit(w: _Witnesses) -> Blame | None:
    c = w.completion
    if not w.at_limit or not (w.failed or not w.content.strip()) or _loop(w.content or c.raw):
        return None
    if any(call.ok for call in w.calls) and w.outcome not in ("truncated", "ungraded"):
        return None
    if w.completion.request and w.limit is None and c.completion_tokens is None:
        return _says(
            "Cannot be told: the answer ended at a limit that the request did not set.",
            w.finish(),
            "token_limit",
            "the completion tokens, and the server's limits",
        )
    why = "Client set the limit: the answer ended at it before it was whole."
    return _says(why, (w.paid(), *w.finish()), "token_limit")


def _stopped(w: _Witnesses) -> Blame | None:
    stop = w.sampling.get("stop")
    if not stop:
        return None
    is_open = (
        w.outcome == "truncated"
        or any(call.status == "truncated" for call in w.left)
        or (w.outcome == "attempted_unparseable" and not any(c.readable for c in w.left))
    )
    if not is_open:
        return None
    why = "Client stopped it: the request has stop texts, and the answer ends inside a call."
    said = Evidence("request", f"stop {json.dumps(stop, ensure_ascii=False)}")
    return _says(why, (said, w.quoted("raw", w.completion.raw[-_SHOWN:])))


def _unfinished(w: _Witnesses) -> Blame | None:
    if w.outcome != "truncated" or w.completion.finish_reason is not None:
        return None
    return _says(
        "Cannot be told: the text ends inside a call, and nothing says why it ended.",
        (w.quoted("raw", w.completion.raw[-_SHOWN:]),),
        tells="the finish reason",
    )


def _against_the_odds(w: _Witnesses) -> Blame | None:
    # A token that the model all but ruled out, where it was sure of another one.
    # In between, such a token is now and then drawn by chance.
    temperature = w.sampling.get("temperature")
    is_extreme = temperature == 0 or w.temperature >= _HOT
    tokens = recorded_tokens(w.completion) if w.failed and is_extreme else None
    if tokens is None:
        return None
    for token in tokens:
        if token.logprob is None or token.entropy is None:
            continue
        if token.logprob <= _UNLIKELY and token.entropy <= _SURE:
            return _says(
                "Sampler drew it: the model was all but sure of another token.",
                (w.quoted("tokens", f"{token.text!r}, {share(math.exp(token.logprob))} likely"),),
            )
    return None


def _repeats(w: _Witnesses) -> Blame | None:
    last = w.functions[-1][1] if w.functions else ""
    text = last or w.content or w.completion.reasoning
    loop = _loop(text) if w.failed or w.at_limit else ""
    if not loop:
        return None
    evidence = (w.quoted("raw", loop),)
    if w.temperature >= _HOT:
        return _hot(w, evidence)
    return _says(
        "Cannot be told: the text repeats itself, which the model or the sampler may cause.",
        evidence,
        "repeats",
        _SAMPLING_TELLS,
    )


def _loop(text: str) -> str:
    # What a text repeats to its end, '' if it does not.
    end = text[-4096:]
    for length in range(1, len(end) // _LOOPS + 1):
        piece = end[-length:]
        count = max(_LOOPS, -(-_SHORTEST_LOOP // length))
        if length * count <= len(end) and end.endswith(piece * count):
            return piece if piece.strip() else ""
    signs = _SIGNS_AGAIN.search(end)
    return signs[0] if signs is not None else ""


def _hot(w: _Witnesses, evidence: tuple[Evidence, ...] = ()) -> Blame:
    said = Evidence("request", f"temperature {w.temperature:g}")
    why = "Sampler broke it: at this temperature the text of every model falls apart."
    return _says(why, (said, *evidence))


def _unread_part(w: _Witnesses) -> Blame | None:
    if w.calls or UNREAD_PART not in w.codes or w.result is None:
        return None
    said = next(p.message for p in w.result.problems if p.code == UNREAD_PART)
    return _says(f"Reader lost it: {said}.", code="unread_part")


def _dropped(w: _Witnesses) -> Blame | None:
    # The finish reason says that a call was made.
    if w.functions or not (NO_CALL in w.codes or (w.ends_with_call and not w.calls)):
        return None
    if w.content.strip() and _forces(w.choice):
        return _forced(w)
    if w.completion.reasoning and _is_readable(w.completion.reasoning, w.case):
        return _says(
            "Server lost it: the response says that it ends with a call, and the only one stands "
            "in the reasoning.",
            (*w.finish(), w.quoted("reasoning", w.completion.reasoning)),
            "call_in_reasoning",
        )
    return _says(
        "Server lost it: the response says that it ends with a call, and holds none.",
        w.finish(),
        "dropped_by_server",
    )


def _in_reasoning(w: _Witnesses) -> Blame | None:
    reasoning = w.completion.reasoning
    if w.has_tokens and w.result is not None:
        reasoning = w.result.reasoning
    if ONLY_REASONED not in w.codes and not (
        w.failed and reasoning and not w.calls and not w.functions
        and (w.has_tokens or not w.content.strip()) and _is_readable(reasoning, w.case)
    ):  # fmt: skip
        return None
    why = "Model wrote it there: its tokens hold the call inside the reasoning."
    if not w.has_tokens:
        why = (
            "Cannot be told: the only call is in the reasoning, where the model wrote it or the "
            "server's parser left it."
        )
    evidence = (w.quoted("reasoning", reasoning),) if reasoning else ()
    return _says(why, evidence, "call_in_reasoning", TOKENS_TELL)


def _left_in_content(w: _Witnesses) -> Blame | None:
    left = {IN_CONTENT, ESCAPED} & w.codes
    unlifted = w.result is not None and is_unlifted(w.completion)
    if not (left or unlifted):
        return None  # most answers, whose content need not be read for it
    calls = [call for call in w.left if call.readable]
    if ESCAPED not in left and not calls:
        return None
    if w.choice == "none":
        said = Evidence("request", "tool_choice none")
        return _says("Client forbade calls, and the model wrote one.", (said,))
    evidence = tuple(w.quoted(*_place(w, call)) for call in calls[:3])
    if ESCAPED not in left and (broken := _broken_by_model(w, w.left)):
        return broken
    why, tells = "Server lost it: it was offered tools, and left a whole call in the content.", ""
    if calls and all("```" in e.says for e in evidence):
        why = "Model wrote it in a fence, which no server takes for a call."
    elif calls and _has_no_opener(w, calls[0]):
        why = (
            "Cannot be told: the end of the call is marked and its beginning is not, which the "
            "model left out or the server took away."
        )
        tells = TOKENS_TELL
    elif any("<|tool_call_begin|>" in e.says and not _KIMI_ID.search(e.says) for e in evidence):
        why = "Model wrote a call without the number that its format asks for."
    elif calls and all(call.status == "unknown_tool" for call in calls):
        why = "Model called what was not offered, and the server left the call in the content."
    return _says(why, evidence, "markup_in_content", tells)


def _has_no_opener(w: _Witnesses, call: ToolCall) -> bool:
    text = w.content if w.is_native and call not in w.calls else w.completion.raw
    # Its segment may have the closer or end before it.
    start, end = call.segment.span.start, call.segment.span.end
    closer = _CLOSER.match(text, end) or _LAST_CLOSER.search(text[start:end])
    return closer is not None and f"<{closer[1]}" not in text


def _broken_by_model(w: _Witnesses, found: tuple[ToolCall, ...]) -> Blame | None:
    # A call that needs repair is one that a server may leave where it is.
    calls = [call for call in found if call.readable]
    if not calls or not all(call.repair_steps for call in calls):
        return None
    rules = ", ".join(dict.fromkeys(s.rule for call in calls for s in call.repair_steps))
    return _says(
        f"Model broke it: the call needs repair ({rules}), and the server did not take it.",
        tuple(w.quoted(*_place(w, call)) for call in calls[:3]),
        "markup_in_content" if w.completion.fidelity in ("sdk", "wire") else "",
    )


def _place(w: _Witnesses, call: ToolCall) -> tuple[str, str, tuple[int, int] | None]:
    # A content inside a message has other places than the raw text.
    start, end = call.segment.span.start, call.segment.span.end
    if w.is_native and call not in w.calls:
        return "content", w.content[start:end], None
    return "raw", w.completion.raw[start:end], (start, end)


def _against_the_server(w: _Witnesses) -> Blame | None:
    # Where the response holds the model's own text beside the server's calls.
    server = (w.completion.response or {}).get("server")
    if w.result is None or not isinstance(server, Mapping) or "calls" not in server:
        return None
    verdict = explain_blame(w.result.calls, ServerReading.from_dict(server))
    theirs = _shown(server["calls"])
    ours = [w.quoted(*_place(w, call)) for call in w.calls[:3]]
    if any(step.rule == "read.double-encoded" for call in w.calls for step in call.steps):
        why = "Model wrote its arguments as a string inside of JSON, and the server passed them on."
        return _says(why, (*ours, *theirs))
    if verdict.layer == "none" and _untyped(w):
        why = (
            "Server changed it: the format writes no types, and the arguments have not the tool's."
        )
        return _says(why, (*ours, *theirs), "changed_by_server")
    if verdict.layer == "none":
        return None if w.failed else verdict
    if verdict.layer == "cannot_tell":
        return None
    if not server["calls"] and (broken := _broken_by_model(w, w.calls)):
        return broken
    if verdict.layer == "model" and w.temperature >= _HOT:
        return _hot(w)
    code = verdict.code
    if code == "dropped_by_server" and _is_readable(w.completion.reasoning, w.case):
        code = "call_in_reasoning"  # which its own tokens do not have there
    return Blame(verdict, verdict.layer, code, (*ours, *theirs))


def _untyped(w: _Witnesses) -> bool:
    # Where the model wrote no quotes around a value, the server is to give it the type of the tool.
    for call in w.calls:
        for step in call.steps:
            origin = call.origins.get().get(step.path) if step.stage == "coerce" else None
            if origin is not None and origin.exact and isinstance(step.before, str):
                start, end = origin.span.start, origin.span.end
                around = w.completion.raw[max(0, start - 1) : end + 1]
                if not {"'", '"'} & {around[:1], around[-1:]}:
                    return True
    return False


def _against_tokens(w: _Witnesses) -> Blame | None:
    # What the model drew, beside what the server made of it.
    if not w.failed or not w.drawn:
        return None
    message = w.message.get("tool_calls")
    calls = message if isinstance(message, list) else ()
    mappings = [call for call in calls if isinstance(call, Mapping)]
    server = ServerReading.of(mappings, "logprobs", independent=True)
    verdict = explain_blame(w.drawn_calls, server)
    if verdict.layer != "server" or (not w.functions and _broken_by_model(w, w.drawn_calls)):
        return None
    drawn = [w.quoted("tokens", w.drawn[call.segment.span.start : call.segment.span.end])
             for call in w.drawn_calls[:3]]  # fmt: skip
    return Blame(verdict, "server", verdict.code, (*drawn, *_shown(w.functions)))


def _stream(w: _Witnesses) -> Blame | None:
    if not (w.completion.response or {}).get("shares_an_index"):
        return None
    return _says(
        "Server changed it: several calls of its stream have one index, and a client that goes "
        "by it gets one broken call.",
        _shown(w.functions),
        "stream_differs",
    )


def _assembled(w: _Witnesses) -> Blame | None:
    # The provider's own calls in a state that no model writes.
    names = {tool.name for tool in w.case.tools}
    for name, arguments in w.functions:
        value, half = _json(arguments), name[: len(name) // 2]
        is_no_json = value is None and bool(arguments.strip())
        why = ""
        if not name.strip() and isinstance(value, dict):
            why = "Server changed it: the call has its arguments and has lost its name."
        elif half in names and name == half * 2:
            why = "Server changed it: the name was put together twice."
        elif _SPECIAL_IN_NAME.search(name):
            why = "Server changed it: the name holds a special token."
        elif is_no_json and _is_several(arguments):
            why = "Server changed it: the arguments of several calls were joined to one."
        elif w.drawn:
            continue  # its tokens have been compared
        elif isinstance(value, str) and isinstance(_json(value), dict):
            why = (
                "Cannot be told: the arguments are JSON in JSON, which the model, the template or "
                "the server may have written."
            )
        elif is_no_json:
            why = (
                "Cannot be told: the arguments are no JSON, and the response does not hold what "
                "the model wrote."
            )
        if why:
            is_servers = why.startswith("Server")
            code, tells = ("changed_by_server", "") if is_servers else ("", TOKENS_TELL)
            return _says(why, _shown([(name, arguments)]), code, tells)
    return None


def _emptied(w: _Witnesses) -> Blame | None:
    # A call without the arguments that its tool requires.
    required = {
        tool.name: tool.schema.get("required")
        for tool in w.case.tools
        if isinstance(tool.schema, Mapping)
    }
    for name, arguments in w.functions:
        if arguments.strip() not in ("", "{}") or not required.get(name):
            continue
        paid, evidence = w.completion.completion_tokens, (Evidence("tool_calls", f"{name}({{}})"),)
        if paid is None:
            return _says(
                "Cannot be told: the call has no arguments, and nobody counted the tokens that "
                "were paid for.",
                evidence,
                tells="the completion tokens, or log probabilities",
            )
        # A call of its name alone, with all marks around it, takes about so many.
        shown = len(w.content) + len(w.completion.reasoning) + sum(len(n) for n, _ in w.functions)
        if paid - w.reasoning_tokens > 32 + shown / 3:
            why = "Server lost it: more tokens were paid for than a call without arguments takes."
            return _says(why, (*evidence, w.paid()), "changed_by_server")
    return None


def _json(text: str) -> Any:
    # None where it is none.
    try:
        return read_strict(text)
    except (ValueError, RecursionError):
        return None


def _is_several(text: str) -> bool:
    match = _SEVERAL_OBJECTS.search(text)
    while match is not None:
        cut = match.start() + 1
        if isinstance(_json(text[:cut]), dict):
            return True
        match = _SEVERAL_OBJECTS.search(text, cut)
    return False


def _not_shown(w: _Witnesses) -> Blame | None:
    # Too few tokens were sent to hold the tools that the request offers.
    c = w.completion
    if not (w.failed or not w.calls) or not w.case.tools or not c.prompt_tokens:
        return None
    # Some providers count what was cached with the prompt, some apart.
    details = token_details(c.response)
    sent = c.prompt_tokens + sum(
        details[name] or 0 for name in ("cached_tokens", "cache_write_tokens")
    )
    shown = [word for tool in w.case.tools for word in words_of_tool(tool)]
    length = sum(map(len, shown))
    if length < 200 or length <= _CHARACTERS_A_TOKEN * sent:
        return None
    words = f"{sent} prompt tokens for {length} characters of tools alone"
    return _says(
        "Template lost it: the prompt has too few tokens to hold the tools.",
        (Evidence("usage", words),),
        "tools_not_shown",
    )


def words_of_tool(tool: Any) -> list[str]:
    """Return the words that every template has to show of a tool."""
    properties = tool.schema.get("properties") if isinstance(tool.schema, Mapping) else None
    words = [tool.name, tool.description or ""]
    for name, schema in (properties or {}).items():
        words.append(name)
        description = schema.get("description") if isinstance(schema, Mapping) else None
        words.append(description if isinstance(description, str) else "")
    return words


def _forced(w: _Witnesses) -> Blame | None:
    if not w.is_native:
        return None
    why, choice = "", w.choice
    if choice == "none":
        if w.functions:
            why = "Server did not prevent it: calls were forbidden, and it gives one."
        elif w.outcome == "abstained_wrongly":
            why = "Client forbade the call that was wanted."
    elif _forces(choice) and not w.functions and w.content.strip():
        why = "Server did not force it: a call was required, and the answer is in words."
    elif choice.startswith("{") and w.functions:
        named = {tool.name for tool in w.case.tools if json.dumps(tool.name) in choice}
        wanted = {call.get("name") for call in w.case.target or ()}
        if named and all(name not in named for name, _ in w.functions):
            why = "Server did not force it: one tool was named, and another one is called."
        elif named and wanted and not wanted & named:
            why = "Client named another tool than the wanted one."
    if not why:
        return None
    code = "tool_choice_ignored" if why.startswith("Server") else ""
    return _says(why, (Evidence("request", f"tool_choice {choice}"),), code)


def _choice_in(choice: Any) -> Any:
    # Of a body as it was sent. Anthropic has an object in the place of a word.
    if isinstance(choice, Mapping) and "name" not in choice and "function" not in choice:
        choice = choice.get("type")
    return choice if choice != "auto" and isinstance(choice, (str, Mapping)) else None


def _forces(choice: str) -> bool:
    return choice in ("required", "any") or choice.startswith("{")


def _one_at_most(w: _Witnesses) -> Blame | None:
    # The request forbids the several calls that were wanted.
    params = w.completion.request.get("params")
    allowed = params.get("parallel_tool_calls") if isinstance(params, Mapping) else None
    if allowed is not False or len(w.functions) != 1 or len(w.case.target or ()) < 2:
        return None
    said = Evidence("request", "parallel_tool_calls false")
    return _says("Client allowed one call, and wants several.", (said,))


def _none_offered(w: _Witnesses) -> Blame | None:
    # A call was wanted of a request that offered no tool.
    if not w.case.target or w.calls or w.functions:
        return None
    messages = w.completion.request.get("messages")
    if w.case.tools and (not messages or w.completion.request.get("tools")):
        return None
    told = json.dumps(messages, default=str) if w.case.tools else ""
    if any(tool.name in told for tool in w.case.tools):
        return None
    return _says("Client offered no tools, and wants a call.")


def _ran_on(w: _Witnesses) -> Blame | None:
    if not w.failed:
        return None
    match = _END_TOKEN.search(w.content)
    if match is None:
        return None
    start = w.completion.raw.find(match[0])
    span = (start, start + len(match[0])) if start >= 0 else None
    return _says(
        "Server let it run on: the content holds a token that ends a turn.",
        (w.quoted("content", match[0], span),),
        "end_token_in_content",
    )


def _other_format(w: _Witnesses) -> Blame | None:
    if w.result is None or w.is_native or not w.failed or w.result.protocol == "auto":
        return None
    if any(call.readable for call in w.calls):
        return None
    calls = [call for call in _calls_in(w.completion.raw, w.case) if call.ok]
    if not calls or calls[0].protocol == w.result.protocol:
        return None
    return _says(
        f"Client read it by {w.result.protocol}, and it is written as {calls[0].protocol}.",
        tuple(
            w.quoted("raw", w.completion.raw[s.start : s.end], (s.start, s.end))
            for s in (call.segment.span for call in calls[:3])
        ),
        "other_format",
    )


def _written(w: _Witnesses) -> Blame | None:
    # Nothing says that anybody touched it.
    if not w.failed:
        return None
    detail = w.score.detail if w.score is not None else ""
    evidence = [w.quoted("outcome", f"{w.outcome}: {detail}" if detail else w.outcome)]
    if w.result is not None:
        errors = (p for p in w.result.all_problems() if p.severity == "error")
        evidence += [w.quoted("problem", p.message) for p in list(errors)[:2]]
    if w.temperature >= _HOT and not any(call.ok for call in w.calls):
        return _hot(w, tuple(evidence))
    if w.temperature >= _HOT:
        return _says(
            "Cannot be told: at this temperature the sampler may have drawn it.",
            tuple(evidence),
            tells=_SAMPLING_TELLS,
        )
    if w.outcome == "abstained_wrongly" and w.is_native and w.completion.prompt_tokens is None:
        return _says(
            "Cannot be told: it is in words, and nothing says whether the prompt held the tools.",
            tuple(evidence),
            tells="the tokens of the prompt",
        )
    return _says("Model wrote it so.", tuple(evidence))


_RULES: tuple[Callable[[_Witnesses], Blame | None], ...] = (
    _our_failure, _held_back, _error, _ended, _unread_part, _nothing_came, _against_the_odds,
    _repeats, _limit, _stopped, _unfinished, _in_reasoning, _dropped, _left_in_content,
    _against_the_server, _against_tokens, _stream, _assembled, _forced, _one_at_most, _emptied,
    _none_offered, _not_shown, _ran_on, _other_format, _written,
)  # fmt: skip

"""`replay_check`: is what a model drew in one turn what the next turn's prompt shows it?"""

# How it works. A server draws a turn after a prompt, reads its calls, and writes them anew with the
# chat template when the next turn is asked for. If the new prompt does not begin with the old one
# and what was drawn, the model sees another past than its own: its prefix cache is lost, and
# training on such a conversation weighs tokens that were never drawn. Three things are compared, as
# far as they are known: the ids that were recorded; the texts that the template writes; and, where
# the texts are the same, the ids that a tokenizer gives for them. A difference is named by what is
# different once both sides are read: the calls, their values, their order, or only the writing.

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from ....core.errors import BadOptions, UnreadableTemplate
from ....core.toolspec import ToolsLike, tool_specs
from ....core.types import ParseResult
from ....core.types.call import is_meant
from ....core.types.options import TokenizerLike
from ....core.types.tokens import detokenized
from ....core.values import read_strict, same
from ....core.values.affixes import common_prefix
from ....entry.parse import parse_text
from ....evals.scoring.trial import Trial
from ....formats.like import ProtocolLike
from ....middleware.flow import recorded_tokens
from ....runner.chat_templates.renderer import ChatTemplate, Rendering, TemplateLike
from .report import shortened

REPLAY_CODES: Mapping[str, str] = {
    "replay.prompt": "an earlier part of the prompt is written otherwise",
    "replay.answer-start": "the text that the prompt began the answer with is left out",
    "replay.reasoning-dropped": "the reasoning is left out",
    "replay.call-dropped": "a call is left out",
    "replay.text-dropped": "the text beside the calls is left out",
    "replay.encoded-twice": "the arguments are written as a JSON string",
    "replay.value": "an argument has another value",
    "replay.name": "a call has another name",
    "replay.repaired": "a call that was repaired is written as it should have been",
    "replay.order": "the arguments are in another order",
    "replay.white-space": "only white space is different",
    "replay.writing": "the same calls are written otherwise",
    "replay.text": "the text is different",
    "replay.tokens": "the same text has other tokens",
    "replay.crash": "the template stops at the conversation",
}
"""Code -> sentence. Codes are permanent."""

Level: TypeAlias = Literal["ids", "text"]
_SHOWN = 120  # characters after a difference
_REASONING = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Drift:
    """The first place where a turn is shown as something else than was drawn.

    Attributes:
        turn: the turn that was drawn, from 0.
        code: one of `REPLAY_CODES`.
        level: whether ids differ, or texts.
        at: the place in the next prompt, in tokens or in characters.
        drawn: what was drawn from there on.
        shown: what the next prompt has in its place.
    """

    turn: int
    code: str
    level: Level
    at: int
    drawn: str
    shown: str

    def to_dict(self) -> dict[str, Any]:
        """Return the drift as JSON has it."""
        return {**asdict(self), "meaning": REPLAY_CODES[self.code]}

    def __str__(self) -> str:
        unit = "token" if self.level == "ids" else "character"
        return (
            f"turn {self.turn}: {self.code}: {REPLAY_CODES[self.code]}, from {unit} {self.at} on\n"
            f"  drawn:  {shortened(self.drawn, _SHOWN)}\n"
            f"  shown:  {shortened(self.shown, _SHOWN)}"
        )


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The differences between the model's own turns and the next prompts.

    Attributes:
        turns: number of turns that were compared with the next prompt.
        drifts: one for each turn that differs in the next prompt.
        levels: what was compared: ids, text or both.
    """

    turns: int
    drifts: tuple[Drift, ...]
    levels: tuple[Level, ...]

    @property
    def ok(self) -> bool:
        """True if no turn differs in the next prompt."""
        return not self.drifts

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        return {
            "turns": self.turns,
            "levels": list(self.levels),
            "drifts": [drift.to_dict() for drift in self.drifts],
        }

    def __str__(self) -> str:
        what = " and ".join(self.levels) or "nothing"
        many = f"{self.turns} turn{'' if self.turns == 1 else 's'} compared with the next"
        if not self.turns:
            return "Nothing to compare: the conversation has no turn after a turn of the model."
        if self.ok:
            return f"{many}, by {what}: each prompt begins with what was drawn before."
        head = f"{many}, by {what}: {len(self.drifts)} shown otherwise than drawn."
        return "\n".join([head, *map(str, self.drifts)])


@dataclass(frozen=True, slots=True)
class _Turn:
    messages: Sequence[Mapping[str, Any]]
    raw: str | None = None
    ids: Sequence[int] = ()
    prompt_ids: Sequence[int] = ()


def replay_check(
    conversation: Iterable[Mapping[str, Any]] | Trial,
    template: TemplateLike | None = None,
    *,
    tools: ToolsLike = None,
    protocol: ProtocolLike = "auto",
    tokenizer: TokenizerLike | None = None,
    arguments: Literal["object", "text"] = "object",
) -> ReplayReport:
    """Return the turns that differ in the next prompt from the model's own text.

    Args:
        conversation: the messages in OpenAI's shape, or the requests of a conversation in order,
            each a dict with its `messages`. Put the model's own text (`raw`), or its tokens
            (`token_ids`) and the prompt's (`prompt_token_ids`), into its assistant message, or into
            the request that it answered. Without them, the template's text of the message counts.
            Or a trial with a conversation, of which all of that is known.
        template: the chat template, as for `check_template`. Not needed if all ids are known.
        tools: those of the request.
        protocol: the format of the calls.
        tokenizer: an object with `encode` and `decode`, to compare the tokens of equal texts.
        arguments: how a server hands the arguments of earlier calls to the template: as an object
            (vLLM, SGLang), or as the JSON text of the message.

    Raises BadOptions for anything that is not a conversation, and if there is nothing to compare
    turns by; and the errors of `check_template` for a template.

    >>> template = (
    ...     "{% for m in messages %}<|{{ m.role }}|>{% for c in m.tool_calls or [] %}"
    ...     '<tool_call>{"name": "{{ c.function.name }}", "arguments": '
    ...     "{{ c.function.arguments | tojson }}}</tool_call>{% endfor %}{{ m.content or '' }}\\n"
    ...     "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    ... )
    >>> function = {"name": "f", "arguments": '{"a": 1}'}
    >>> drawn = '<tool_call>{"name": "f", "arguments": {"a":1}}</tool_call>'
    >>> messages = [
    ...     {"role": "user", "content": "Go"},
    ...     {"role": "assistant", "tool_calls": [{"function": function}], "raw": drawn},
    ...     {"role": "tool", "content": "done"},
    ...     {"role": "assistant", "content": "It is done."},
    ... ]
    >>> replay_check(messages, template).drifts[0].code
    'replay.white-space'
    """
    if arguments not in ("object", "text"):
        raise BadOptions(
            "no form of arguments of this name", got=arguments, expected="'object' or 'text'"
        )
    if isinstance(conversation, Trial):
        conversation, asked_tools = _requests_of(conversation)
        tools = asked_tools if tools is None else tools
    turns = _turns(conversation)
    if template is None and not any(turn.prompt_ids for turn in turns[1:]):
        raise BadOptions(
            "there is nothing to compare turns by",
            got="no template, and no prompt_token_ids",
            expected="the model's chat template, or the recorded ids of prompts and answers",
        )
    writings = None if template is None else _writings(template, turns, tools, arguments)
    drifts: list[Drift] = []
    levels: dict[Level, None] = {}
    for i, (turn, after) in enumerate(pairwise(turns)):
        found = None
        if turn.prompt_ids and turn.ids and after.prompt_ids:
            levels["ids"] = None
            drawn, n = [*turn.prompt_ids, *turn.ids], len(turn.prompt_ids)
            found = _drift_of_ids(i, drawn, list(after.prompt_ids), n, tokenizer)
        if writings is not None:
            levels["text"] = None
            asked, before, alone, _, shown = writings[3 * i : 3 * i + 5]
            if shown.error:
                found = Drift(i, "replay.crash", "text", 0, turn.raw or "", shown.error)
            else:
                told = len(asked.text) if before.text.startswith(asked.text) else len(before.text)
                texts = _Texts(i, before.text, told, alone.text, shown.text, turn.raw, protocol)
                by_text = texts.drift()
                if by_text is None and found is None and tokenizer is not None:
                    found = _drift_of_tokens(i, turn, before.text, shown.text, tokenizer)
                # The text says what is different, the ids only that something is.
                found = by_text or found
        if found is not None:
            drifts.append(found)
    return ReplayReport(max(0, len(turns) - 1), tuple(drifts), tuple(levels))


# -- the turns


def _requests_of(trial: Trial) -> tuple[list[dict[str, Any]], ToolsLike]:
    # The requests of a recorded conversation, and their tools.
    if trial.conversation is None:
        raise BadOptions(
            "this trial has one turn, so there is no later prompt to show it", got=trial.trial_id
        )
    # The conversation goes on as if its corrections had not been asked.
    turns = [turn for turn in trial.conversation.turns if not turn.corrects]
    requests = []
    for turn in turns:
        native = turn.completion.endpoint_kind == "native_tools"
        tokens = recorded_tokens(turn.completion)
        requests.append(
            {
                "messages": turn.request.messages,
                # The JSON of a provider's own calls is nothing that was drawn.
                "raw": None if native and tokens is None else turn.completion.raw,
                "token_ids": tokens.ids if tokens is not None else (),
                "prompt_token_ids": tokens.prompt_ids if tokens is not None else (),
            }
        )
    return requests, turns[0].request.tools if turns else ()


def _turns(conversation: Iterable[Mapping[str, Any]]) -> list[_Turn]:
    items = [conversation] if isinstance(conversation, (str, Mapping)) else list(conversation)
    if not items or not all(isinstance(item, Mapping) for item in items):
        raise BadOptions(
            "this is no conversation",
            got=type(conversation).__name__ if items else "no messages",
            expected="messages in OpenAI's shape, or the requests of a conversation",
        )

    def turn(messages: Sequence[Mapping[str, Any]], item: Mapping[str, Any]) -> _Turn:
        raw = item.get("raw")
        ids, prompt_ids = _ids(item, "token_ids"), _ids(item, "prompt_token_ids")
        return _Turn(messages, raw if isinstance(raw, str) else None, ids, prompt_ids)

    if all("messages" in item for item in items):
        return [turn(list(item["messages"]), item) for item in items]
    roles = [message.get("role") for message in items]
    turns = [turn(items[:at], items[at]) for at, role in enumerate(roles) if role == "assistant"]
    return turns if roles[-1] == "assistant" else [*turns, _Turn(items)]


def _ids(item: Mapping[str, Any], name: str) -> list[int]:
    ids = item.get(name) or ()
    return list(ids) if all(type(i) is int for i in ids) else []


def _writings(
    template: TemplateLike, turns: Sequence[_Turn], tools: ToolsLike, arguments: str
) -> list[Rendering]:
    # By turns the messages of a turn, its prompt, and its messages with its own answer.
    specs = [tool.to_openai() for tool in tool_specs(tools)]
    jobs: list[dict[str, Any]] = []
    for turn, after in pairwise(turns):
        jobs += [_job(turn.messages, specs, arguments, prompt=end) for end in (False, True)]
        answer = after.messages[: len(turn.messages) + 1]
        jobs.append(_job(answer, specs, arguments, prompt=False))
    jobs += [_job(turns[-1].messages, specs, arguments, prompt=end) for end in (False, True)]
    writings = ChatTemplate.of(template).render(jobs)
    if writings[1].error:
        raise UnreadableTemplate("the template stops at the first prompt", got=writings[1].error)
    return writings


_OURS = ("raw", "token_ids", "prompt_token_ids")


def _job(
    messages: Sequence[Mapping[str, Any]], tools: Any, arguments: str, *, prompt: bool
) -> dict[str, Any]:
    sent = []
    for message in messages:
        copy = {name: value for name, value in message.items() if name not in _OURS}
        copy.setdefault("content", "")
        if isinstance(copy.get("tool_calls"), list):
            copy["tool_calls"] = [_call(call, arguments) for call in copy["tool_calls"]]
        sent.append(copy)
    return {"messages": sent, "tools": tools or None, "add_generation_prompt": prompt}


def _call(call: Any, arguments: str) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return call
    value = function.get("arguments")
    if arguments == "object" and isinstance(value, str):
        # A server that cannot read it either fails or hands it on.
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    elif arguments == "text" and not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    return {"type": "function", **call, "function": {**function, "arguments": value}}


# -- ids


def _drift_of_ids(
    number: int, drawn: list[int], shown: list[int], n_prompt: int, tokenizer: Any
) -> Drift | None:
    at = common_prefix(drawn, shown)
    if at == len(drawn):
        return None
    code = "replay.prompt" if at < n_prompt else "replay.tokens"

    def words(ids: Sequence[int]) -> str:
        some = ids[at : at + 12]
        return detokenized(some, tokenizer) if tokenizer is not None else " ".join(map(str, some))

    return Drift(number, code, "ids", at, words(drawn), words(shown))


def _drift_of_tokens(
    number: int, turn: _Turn, before: str, after: str, tokenizer: Any
) -> Drift | None:
    # The text goes on as it was drawn; its tokens may not.
    encode = getattr(tokenizer, "encode", None)
    if encode is None or turn.raw is None:
        return None

    def ids_of(text: str) -> list[int]:
        try:
            made = encode(text, add_special_tokens=False)
        except TypeError:
            made = encode(text)
        return list(getattr(made, "ids", made))

    own = list(turn.ids) or ids_of(turn.raw)
    start = list(turn.prompt_ids) or ids_of(before)
    return _drift_of_ids(number, [*start, *own], ids_of(after), 0, tokenizer)


# -- texts


@dataclass(frozen=True, slots=True)
class _Texts:
    """A turn as a template writes it."""

    number: int
    before: str  # its prompt
    told: int  # where in the prompt its last message ends, and the beginning of an answer follows
    alone: str  # the prompt with the answer
    after: str  # the next prompt
    drawn: str | None
    protocol: ProtocolLike

    def drift(self) -> Drift | None:
        drawn = self.drawn
        if drawn is None:
            # The template's own writing, without what it puts after the last message.
            if not self.alone.startswith(self.before):
                return self._at_prompt(self.alone)
            whole, shown = self.alone, self.after
            if shown.startswith(whole):
                return None
            drops = len(_REASONING.findall(whole)) > len(_REASONING.findall(shown))
            return self._at("replay.reasoning-dropped" if drops else "replay.prompt", whole, shown)
        whole = self.before + drawn
        if self.after.startswith(whole):
            return None
        if not self.after.startswith(self.before):
            return self._at_prompt(self.after)
        return self._at(self._code(drawn), whole, self.after)

    def _at_prompt(self, shown: str) -> Drift:
        is_start = common_prefix(self.before, shown) >= self.told
        return self._at("replay.answer-start" if is_start else "replay.prompt", self.before, shown)

    def _at(self, code: str, drawn: str, shown: str) -> Drift:
        at = common_prefix(drawn, shown)
        return Drift(self.number, code, "text", at, drawn[at:], shown[at : at + 400])

    def _code(self, drawn: str) -> str:
        # What follows the turn in the next prompt is that of the messages after it.
        shown = self._shown()
        thought = _REASONING.sub("", drawn)
        if thought != drawn and not _REASONING.search(shown):
            if _bare(thought) in _bare(shown):
                return "replay.reasoning-dropped"
            drawn = thought
        if _bare(drawn) in _bare(shown):
            return "replay.white-space"
        own, theirs = (parse_text(text, self.protocol) for text in (drawn, shown))
        if own.calls:
            return _difference_of(own, theirs)
        if theirs.calls or _bare(own.text) != _bare(theirs.text):
            return "replay.text"
        return "replay.writing"

    def _shown(self) -> str:
        # The turn as the template writes it, as far as the next prompt has it.
        start, end = len(self.before), common_prefix(self.alone, self.after)
        if self.alone.startswith(self.before) and end > start:
            return self.alone[start:end]
        return self.after[start:]


def _difference_of(own: ParseResult, theirs: ParseResult) -> str:
    readable = [call for call in own.calls if is_meant(call)]
    shown = [call for call in theirs.calls if is_meant(call)]
    for one, other in zip(readable, shown, strict=False):
        if one.name != other.name:
            return "replay.name"
        again, before = (
            any(step.rule == "read.double-encoded" for step in call.steps) for call in (other, one)
        )
        if again and not before:
            return "replay.encoded-twice"
        if not same(read_strict(one.arguments_json), read_strict(other.arguments_json)):
            return "replay.value"
    if len(shown) < len(readable):
        written = theirs.raw
        named = [call for call in readable if call.name and call.name in written]
        if len(named) == len(readable) and '\\"' in written:
            return "replay.encoded-twice"
        return "replay.call-dropped"
    if own.text.strip() and own.text.strip() not in theirs.raw:
        return "replay.text-dropped"
    if any(call.edits for call in own.calls):
        return "replay.repaired"
    orders = [
        [list(read_strict(call.source_json or "{}")) for call in calls]
        for calls in (readable, shown)
    ]
    return "replay.order" if orders[0] != orders[1] else "replay.writing"


def _bare(text: str) -> str:
    return _SPACE.sub("", text)

"""A tag that names the function, in it one tag a parameter with raw text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ...arguments.rjson.positions import apply_edits
from ...arguments.rjson.strict import Refusal
from ...core.errors import UnwritableCall
from ...core.toolspec import ToolSpec
from ...core.values import Value, read_strict, same, write_canonical
from ..base import (
    NEED_MORE,
    Answer,
    Codec,
    DecodeContext,
    Decoded,
    Envelope,
    Fit,
    Opening,
    Protocol,
    Signs,
    Tools,
)
from ..json.call import json_calls
from ..json.scan import JsonBody, ends_in_value
from ..prompt.grammar import MAX_DEPTH, literal, object_schema
from ..prompt.shape import kind_of, resolve
from ..prompt.type_rules import JSON_TYPE_RULES, TypeRules
from ..prompt.wording import Wordings
from ..results import Between, TextResult
from ..scan import Scanner, ends_inside, skip_space
from ..xml.grammar import BARE_SCALARS, ElementGrammar
from .doubt import TagDisambiguation, hold_no_tag, say_tags_in_values
from .form import (
    Form,
    TagForm,
    closes_itself,
    function_group,
    kind_of_value,
    names_function,
)
from .reader import FunctionReader
from .scan import ParameterScan
from .strict import read_functions

# A name that survives the trimming of readers and cannot be taken for the end of its tag.
_TAG_NAME = re.compile(r"[^\s<>\"'=](?:[^<>\"'\r\n]{0,254}[^\s<>\"'])?")


@dataclass(frozen=True, slots=True)
class TagGrammar:
    """Writes the grammar of one call in the tags of a form."""

    form: Form

    def __call__(self, tools: Sequence[ToolSpec]) -> str:
        form, line = self.form, "\n" if self.form.lines else ""
        root = f"call {literal(form.function_closer)}"
        if form.opener:
            closer = literal(form.function_closer + line + form.closer.strip())
            root = f"{literal(form.opener.strip() + line)} call {closer}"
        return _TagCalls(tools, form).grammar(root)


class _TagCalls(ElementGrammar):
    nested = False

    def __init__(self, tools: Sequence[ToolSpec], form: Form) -> None:
        self.form = form
        super().__init__(tools)

    def call(self, tool: ToolSpec) -> str | None:
        children = self.children(object_schema(tool), MAX_DEPTH)
        # A tool that can never be called has no rule.
        if children is None:
            return None
        head = self.form.function_tag(_checked(tool.name)) + ("\n" if self.form.lines else "")
        return f"{literal(head)} {children}".rstrip()

    def field(self, name: str, schema: Any, depth: int) -> str | None:
        if depth < 0 or schema is False:
            return None
        # A list is JSON here: a tag that is repeated would be several parameters.
        node = resolve(schema, self.root_schema)
        content = self.content(node, depth)
        if content is None:
            return None

        tag = self.form.parameter_tag(_checked(name), kind_of(node))
        line = "\n" if self.form.lines else ""
        # A line break next to the value is part of the value where the format does not trim it.
        inner = self.form.edge
        head = literal(tag + inner)
        tail = literal(f"{inner}{self.form.parameter_closer}{line}")
        return f"{head} {content} {tail}"


def _checked(name: str) -> str:
    if not _TAG_NAME.fullmatch(name):
        raise UnwritableCall("this name cannot stand in a tag", got=name)
    return name


def tag_type_rules(form: Form) -> TypeRules:
    structures = JSON_TYPE_RULES.rules[len(BARE_SCALARS) :]
    pair = f"{form.parameter_tag('{name}')}{{value}}{form.parameter_closer}"
    return TypeRules((*BARE_SCALARS, *structures), pair)


_ALONE = Opening(0)
_OTHER = "other"  # in an opening: the inside of the call is written as another format does
_OTHER_INSIDE = re.compile(
    r"\s{0,16}+(?:(?P<json>[{\[]\s{0,16}+[\"{])"
    r"|[\"'`<]{0,2}+(?:(?:functions?|tool|tool_name|name|call)[.:>\s]\s?)?[\"'`]?"
    r"(?P<name>[\w.-]{1,128}+)(?=\s{0,8}+(?:[(){}\[\]<>\"'`=:,;]|\Z)|[ \t]{0,8}+\r?\n))"
)
_OTHER_SO_FAR = re.compile(r"\s{0,16}+[^\n]{0,160}+\n?\s{0,16}+\Z")
_BARE = "bare"  # in an opening: the function's name stands there without its tag
_RESPONSE = ("<tool_response>", "</tool_response>")
_LONGEST_WORD = 12  # of a tag that a format's opener is told from another's by, with its `<`


_JSON = re.compile(r"\s{0,64}\{")


@dataclass(frozen=True)
class ParameterTags(Envelope):
    """Envelope: blocks of functions, and lone functions where a call seems to follow their tag.

    `restarts` is empty: its scanner finds by itself if a body was given up and begun again.
    """

    form: Form
    restarts: tuple[str, ...] = ()

    @cached_property
    def closers(self) -> tuple[str, ...]:
        return (self.form.closer,) if self.form.closer else ()

    @cached_property
    def _block(self) -> Opening:
        return Opening(len(self.form.opener))

    @cached_property
    def _heads(self) -> tuple[str, ...]:
        heads = [self.form.opener] if self.form.opener else []
        return (*heads, *self.form.tag_heads(), *self.form.markup)

    def sure_bodies(self, head: str) -> tuple[re.Pattern[str], ...]:
        # A function's tag and the head of a parameter's, after one of the format's heads:
        # the block's opener, or the beginning of the tag in a format without blocks.
        before, after = self.form.function_tag("\0").split("\0")[:2]
        parameter, behind = self.form.parameter_tag("\0").split("\0")[:2]
        if self.opener_is_body:
            if not before.startswith(head):
                return ()
            before = before[len(head) :]
        elif head != self.form.opener:
            return ()
        begin, end, inner = (re.escape(text.strip()) for text in (before, after, parameter))
        gap, name = r"\s{0,64}", r"[\w.-]{1,128}"
        # A longer head is another format's, whose parameters' tags may go on in another way.
        rest = "" if head in self._heads else name + re.escape(behind)
        return (re.compile(rf"(?={gap}{begin}{name}{gap}{end}{gap}{inner}{rest})"),)

    def closer_of(self, opening: Opening) -> str | None:
        if opening.attributes == _OTHER:
            return None
        return self.closers[0] if opening.end and self.closers else None

    @property
    def opener_is_body(self) -> bool:
        return not self.form.opener

    heads_are_fixed = True

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return self._heads

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        # The opening of a function is empty: its own tag is part of the body, as it is
        # inside a block.
        opener = self.form.opener
        # The block's opener is the surest sign, and asked for first.
        if opener and text.startswith(opener, pos):
            return self._block
        if not final and ends_inside(text, pos, (opener,)):
            return NEED_MORE

        tag = self.form.tags.match(text, pos)
        if tag is None or (tag["cut"] is not None and final):
            return self._other(text, pos, final, tools)
        if tag["cut"] is not None:
            return NEED_MORE
        return self._alone(text, tag, final, tools)

    def _alone(self, text: str, tag: re.Match[str], final: bool, tools: Tools) -> Answer:
        # It is only believed in the format's own spelling, or if the tool is known: text about
        # functions is full of such tags.
        if tag["f"] is None:
            return None
        name = tag[function_group(tag)]
        if name not in tools and not self.form.owns(tag[0], name, function=True):
            return None
        if closes_itself(tag):
            return _ALONE
        # What follows has to be the inside of a call: prose about a function ends or goes on there.
        heads = self.form.heads
        inside = heads.inside.match(text, tag.end())
        if inside is not None:
            # Words before a JSON object are no name where nothing but their place makes them one.
            is_word = self.form.bare_names and inside[0].endswith("{")
            return None if is_word and name not in tools else _ALONE
        return NEED_MORE if not final and heads.partial.match(text, tag.end()) else None

    def _other(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        # JSON, or a tool on offer with something else after its name: such a body is read,
        # or it is refused, but not taken for text.
        # A special token says what it is; a mere tag has to be followed by a call.
        if self.form.markup:
            return self._markup(text, pos)
        if not self.form.bare_names:
            return None
        head = self.form.heads.block.match(text, pos)
        if head is None:
            return None
        inside = _OTHER_INSIDE.match(text, head.end())
        ends = inside is not None and inside.end() == len(text)
        if (
            inside is not None
            and not (ends and not final)
            and (inside["json"] or inside["name"] in tools)
        ):
            return Opening(head.end() - pos, attributes=_OTHER)
        return NEED_MORE if not final and _OTHER_SO_FAR.match(text, head.end()) else None

    def may_open(self, literal: str) -> bool:
        opener = self.form.opener
        if opener and (literal.startswith(opener) or opener.startswith(literal)):
            return True
        if self._markup(literal, 0) is not None:
            return True
        tag = self.form.tags.match(literal)
        return tag is not None and (tag["cut"] is None or self.form.may_go_on(literal))

    def _markup(self, text: str, pos: int) -> Opening | None:
        for token in self.form.markup:
            if text.startswith(token, pos):
                return Opening(len(token), "markup")
        return None

    def suits(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> Fit:
        # The block begins with a function's tag then, or with a stand-in for one.
        if opening.whole or opening.kind != "call" or opening.attributes == _OTHER:
            return False
        at = skip_space(text, at)
        # A tag with its bracket decides at once; without it the tool has to be known.
        if self.form.heads.block.match(text, at):
            return self._suits_tag(opening, text, at, final, tools)
        bare, partial = self.form.bare
        match = bare.match(text, at)
        if match is not None and names_function(match, tools):
            return True
        # A word or two before the tag are a slip of the model, not another format.
        words, words_so_far = self.form.heads.words
        if opening.end and words.match(text, at):
            return True
        if final:
            return False
        if opening.end and words_so_far.match(text, at):
            return NEED_MORE

        # More text may make a tag of what is here.
        if match is None and partial.match(text, at):
            return NEED_MORE
        return NEED_MORE if self.form.may_begin(text[at : at + _LONGEST_WORD]) else False

    def _suits_tag(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> Fit:
        # None if only its words are of this format.
        tag = self.form.tags.match(text, at)
        if tag is None or tag["cut"] is not None:
            return NEED_MORE if tag is not None and not final else True
        if self.form.bare_names and not opening.end:
            # Where a name is a bare word, a parameter follows it, or the tool is known: another
            # format with the same opener may take any body.
            if tag[function_group(tag)] in tools:
                return True
            inside = self.form.heads.inside.match(text, tag.end())
            return inside is not None and not inside[0].endswith(self.form.function_closer)
        if self.form.owns(tag[0], tag[function_group(tag)], function=True):
            # JSON after a tag without its block is rather a call of a format that writes it so.
            return True if opening.end or not _JSON.match(text, tag.end()) else None
        # In a block any word for a function will do, alone it may be the word of another format.
        return True if opening.end and not self.form.bare_names else None

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        # A parameter's value, JSON in place of tags, or words where only tags can be.
        # JSON in place of tags knows its own strings.
        start = text.lstrip()
        if start[:1] in ("{", "["):
            return ends_in_value(start)
        scan = ParameterScan(self.form, tools, wrapped=opening.end > 0, whole=True)
        scan.scan(text, True)
        if not scan.marks:
            return False  # nothing but words before the first tag
        last = scan.marks[-1]
        if last.kind == "json":
            return ends_in_value(text[last.start :])
        return scan.in_value or text[last.end :].strip() != ""

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if opening.attributes == _OTHER:
            return JsonBody((self.form.function_closer,), self.form.tag_heads())
        bare = opening.attributes == _BARE
        return ParameterScan(self.form, tools, wrapped=opening.end > 0, bare=bare)

    @property
    def may_resume(self) -> bool:
        return self.form.bare_names

    def resume_starts(self, tools: Tools) -> str | None:
        return "".join(name[:1] for name in tools)

    def resumes(self, text: str, tools: Tools) -> Answer:
        # The tag of a known tool may have been in the prompt, or was a special token that
        # was stripped.
        if not self.form.bare_names:
            return None
        bare, partial = self.form.bare
        match = bare.match(text)
        if match is not None:
            return Opening(0, attributes=_BARE) if names_function(match, tools) else None
        cut = partial.match(text)
        # Most answers begin with some word: only one that may be a tool's name is held back.
        word = cut["line"] if cut is not None else None
        if word is None or not any(
            name == word or (len(word) == len(text) and name.startswith(word)) for name in tools
        ):
            return None
        return NEED_MORE


def _no_function(body: str) -> Refusal:
    code = "decode.tags" if body.strip() else "decode.empty"
    return Refusal(code, "there is no function between opener and closer", 0)


@dataclass(frozen=True)
class ParameterCall(Codec):
    """Codec of the whole family. A body is one or several functions, their own tags included."""

    form: Form

    # How it works: a body in the format's own spelling is read by one pattern. All others are
    # walked over again by the scanner, which keeps the tags that count, and each function is read
    # on its own, so that one that cannot be read leaves the others alone. What took edits is read
    # once more, strictly, from the edited body: a repaired tag could make others count. So a body
    # is gone over three times at most, whatever is wrong with it.

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        if not body:
            raise _no_function(body)  # a model that repeats an opener leaves thousands of these
        calls = read_functions(self.form, body)
        # Nearly every body ends here.
        if calls and hold_no_tag(calls, context.tools):
            return calls
        bodies = TagDisambiguation(self.form, body, context)
        if not calls or any(map(bodies.is_doubtful, calls)):
            calls = bodies.settle(lambda: self._damaged(body, context))
        return tuple(say_tags_in_values(self.form, body, call) for call in calls)

    def _damaged(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        if body.lstrip()[:1] in ("{", "["):
            return json_calls(self.form.opener, self.form.closer, body, context)

        functions = self._functions(body, context)
        if not functions:
            # Words before JSON are a damage that its own reader knows.
            if "{" in body and context.repair:
                return json_calls(self.form.opener, self.form.closer, body, context)
            raise _no_function(body)

        calls: list[Decoded] = []
        open_before = False
        for function in functions:
            try:
                call = function.read()
            except Refusal as reason:
                call = function.unread(reason)
            # A function after one that breaks off in the middle of words is what those words
            # quote. Its own tags are sound, so only what is before it tells.
            if open_before and call.readable:
                message = "the call is inside another call, whose own text is not over"
                call = function.unread(Refusal("call.inside-value", message, function.start))
            open_before = open_before or (not call.readable and function.breaks_off)
            calls.append(call)

        # Without edits the body says what it says; each repair has to be proved.
        if any(call.edits for call in calls) and not self._is_proven(body, context, calls):
            refusal = Refusal("decode.ambiguous", "repaired, it would read as something else", 0)
            pairs = zip(calls, functions, strict=True)
            return tuple(f.unread(refusal) if call.edits else call for call, f in pairs)
        return tuple(calls)

    def _functions(self, body: str, context: DecodeContext) -> list[FunctionReader]:
        scan = ParameterScan(self.form, context.tools, wrapped=True, whole=True)
        scan.scan(body, True)
        marks = scan.marks
        starts: list[int] = []
        for i, mark in enumerate(marks):
            before = marks[i - 1] if i else mark
            # The same function's tag twice, with nothing between them, is one.
            doubled = i > 0 and (before.kind, before.name) == ("function", mark.name)
            if mark.kind == "function" and not (
                doubled and not body[before.end : mark.start].strip()
            ):
                starts.append(i)
        return [
            FunctionReader(self.form, body, context, scan, start, stop, last=stop == len(marks))
            for start, stop in zip(starts, [*starts[1:], len(marks)], strict=False)
        ]

    def _is_proven(self, body: str, context: DecodeContext, calls: list[Decoded]) -> bool:
        # A tag that is put right can make others count, and a value can end elsewhere then.
        # Such a repair would not say the model's own text.
        edited = apply_edits(body, [edit for call in calls for edit in call.edits])
        again = self._damaged(edited, replace(context, closed=True, repair=False))
        if len(again) != len(calls):
            return False

        # A call that was not readable took its edits back with it.
        pairs = zip(calls, again, strict=True)
        return all(
            new.readable and new.name == old.name and same(new.arguments, old.arguments)
            for old, new in pairs
            if old.readable
        )

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        """Return the call. Raises UnwritableCall. A value that contains tags of the format is
        written as it is where it reads back the same, and with its tags escaped otherwise.
        """
        arguments = read_strict(arguments_json)
        if not isinstance(arguments, dict):
            raise UnwritableCall(
                "arguments are written as tags, so they must be an object", got=arguments_json
            )
        texts = {key: _as_text(value) for key, value in arguments.items()}
        typed = self.form.flags and not self.form.flags_may_miss
        expected: Value = arguments if typed else {**texts}
        # The plainest text first: escapes are for values that would not survive.
        if not any(_holds_call(self.form, text) for text in texts.values()):
            text = self._written(name, arguments, escape=False)
            form = self.form
            if self.says(text[len(form.opener) : len(text) - len(form.closer)], expected, tool):
                return text

        if not self.form.entities:
            raise UnwritableCall(
                "a value holds tags of the format, which has no way to escape them", got=name
            )
        return self._written(name, arguments, escape=True)

    def _written(self, name: str, arguments: dict[str, Value], *, escape: bool) -> str:
        form = self.form
        line = "\n" if form.lines else ""
        parts = [form.opener, line if form.opener else "", form.function_tag(name), line]
        for key, value in arguments.items():
            text = _as_text(value)
            # One with a bare `<` is raw, so its references need no escape.
            if form.entities and (escape or "<" not in text):
                text = _NEEDS_AMP.sub("&amp;", text).replace("<", "&lt;")
            # One more line break is written before or after its own, if the reader would take that
            # for the format's. After a carriage return none may, or both would be one line break.
            before = behind = form.edge
            if form.trim and text.startswith(("\n", "\r\n")):
                before = "\n"
            if form.trim and text.endswith(("\n", "\r")):
                behind = "\n" if text.endswith("\n") else ""
            parts += [form.parameter_tag(key, kind_of_value(value)), before, text, behind]
            parts += [form.parameter_closer, line]
        parts += [form.function_closer, line if form.closer else "", form.closer]
        return "".join(parts)


# An ampersand that would be read as the beginning of a reference.
_NEEDS_AMP = re.compile(r"&(?=#[0-9]{1,8};|#[xX][0-9a-fA-F]{1,6};|(?:lt|gt|amp|quot|apos);)")


def _as_text(value: Value) -> str:
    return value if isinstance(value, str) else write_canonical(value)


def _holds_call(form: Form, text: str) -> bool:
    # A reader that knows the tool would look for the call's end, so such a tag is escaped even
    # if it reads back as it is with the tools that are known here.
    if form.next_parameter.search(text):
        return True
    for tag in form.tags.finditer(text):
        if not (tag["f"] or tag["opener"]):
            continue
        if text[tag.end() :].lstrip()[:1] in ("<", "{"):
            return True

    return False


def tag_protocol(
    form: Form, id: str, response: tuple[str, str] = _RESPONSE, **names: Any
) -> Protocol:
    return Protocol(
        id=id,
        envelope=ParameterTags(form),
        codec=ParameterCall(form),
        tags=frozenset(("delimited", "schema-typed")),
        results=TextResult(Between(*response), response),
        grammar=TagGrammar(form),
        type_rules=tag_type_rules(form),
        signs=Signs(openers=(form.sign,)),
        **names,
    )


QWEN3_CODER_XML = tag_protocol(
    TagForm(),
    "qwen3_coder_xml",
    aliases=("qwen3coder", "qwen3_xml"),
    title="<function=…> and <parameter=…> in <tool_call>",
    wordings=Wordings("qwen3_coder_xml"),
)

"""Every rule and problem code, by permanent id, with one sentence each.

A rule names a change that was made (an edit or a step). A code names a complaint. Ids are column
values in frames and class names in CSS, so they are never renamed or reused. The docs table and the
column dictionary come from here.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import UnknownName


@dataclass(frozen=True, slots=True)
class Rule:
    """`lossless` rules can be undone from the traces they left: nothing of the raw text's meaning
    is guessed or dropped. A token that is put in or left out and could have been another is a loss.
    """

    id: str
    sentence: str
    lossless: bool = True

    @property
    def stage(self) -> str:
        """The stage of the pipeline that applies the rule: coerce, read or repair."""
        family = self.id.partition(".")[0]
        # Repairs are named after the grammar of the text that they mend.
        return family if family in ("coerce", "read") else "repair"

    @property
    def css(self) -> str:
        """The rule's class name in CSS."""
        return self.id.replace(".", "-")


_RULES = (
    # repairs of JSON text
    Rule("rjson.trailing-comma", "A comma before a closing bracket is dropped."),
    Rule("rjson.missing-comma", "Two neighbours without a comma get one.", lossless=False),
    Rule("rjson.missing-colon", "A key and its value without a colon get one.", lossless=False),
    Rule("rjson.missing-quote", "A quote that is missing at one end of a string is added, where "
        "one reading is nearest.", lossless=False),
    Rule("rjson.extra-sign", "A bracket, quote or separator too many is dropped, where one reading "
        "is nearest.", lossless=False),
    Rule("rjson.wrong-sign", "A sign that looks like the right one, or stands in its place, is "
        "replaced, where one reading is nearest.", lossless=False),
    Rule("rjson.swapped-signs", "A sign that changed places with its neighbour is put back, where "
        "one reading is nearest.", lossless=False),
    Rule("rjson.literal-newline", "A line break written as an escape between two values is read as "
        "white space."),
    Rule("rjson.single-quotes", "A string in single quotes is read as one in double quotes."),
    Rule("rjson.smart-quotes", "A string in typographic quotes is read as one in double quotes."),
    Rule("rjson.triple-quotes", "A string between triple quotes is read as one in double quotes."),
    Rule("rjson.unquoted-key", "A bare word before a colon is read as a key."),
    Rule("rjson.unquoted-value", "A bare word is read as a string.", lossless=False),
    Rule("rjson.python-literal", "True, False and None are read as true, false and null."),
    Rule("rjson.comment", "A comment is dropped.", lossless=False),
    Rule("rjson.raw-control", "A raw control character inside a string is escaped."),
    Rule("rjson.bad-escape", "A backslash that begins no JSON escape is kept as a backslash."),
    Rule("rjson.unescaped-quote", "A quote inside a string is escaped.", lossless=False),
    Rule("rjson.missing-bracket", "Closing brackets that are missing at the end are added.",
        lossless=False),
    Rule("rjson.missing-opener", "An opening brace that is missing at the start is added.",
        lossless=False),
    Rule("rjson.extra-bracket", "A closing bracket that closes nothing is dropped.",
        lossless=False),
    Rule("rjson.extra-comma", "A comma too many between the members of an object is dropped.",
        lossless=False),
    Rule("rjson.loose-number", "A number with a plus sign or a bare point is written as JSON "
        "writes it."),
    Rule("rjson.escaped-apostrophe", "A backslash before an apostrophe is dropped."),
    Rule("rjson.odd-space", "White space that JSON does not know is read as a space."),
    Rule("rjson.joined-strings", "Strings joined by a plus sign are read as one."),
    Rule("rjson.prose", "Words around the only JSON value are dropped.", lossless=False),
    Rule("rjson.name-before", "A tool's name in front of its arguments is read as their call.",
        lossless=False),
    Rule("rjson.fence", "A code fence around the JSON value is dropped."),
    Rule("rjson.equal-duplicate-key", "A key written twice with equal values is kept once."),
    # repairs of XML text
    Rule("rxml.close-tag-space", "White space inside a closing tag is dropped."),
    Rule("rxml.unclosed-tag", "A tag that is still open at the end of its parent is closed.",
        lossless=False),
    Rule("rxml.mismatched-tag", "A closing tag of a wrong name closes the only tag that is open.",
        lossless=False),
    Rule("rxml.stray-close-tag", "A closing tag that closes nothing is dropped.", lossless=False),
    Rule("rxml.near-tag", "A tag with one wrong character is put right, where one reading fits.",
        lossless=False),
    Rule("rxml.loose-text", "Text beside the parameters of a call's element is dropped.",
        lossless=False),
    # repairs of tags with raw text
    Rule("tags.spelling", "A tag spelt in another way is read as the format's own."),
    Rule("tags.unclosed-parameter", "A value without its closing tag is closed before the next "
        "tag.", lossless=False),
    Rule("tags.unclosed-function", "A function without its closing tag is closed.", lossless=False),
    Rule("tags.mismatched-closer", "A closing tag of another word is read as the format's own.",
        lossless=False),
    Rule("tags.doubled-closer", "A closing tag written twice is kept once.", lossless=False),
    Rule("tags.doubled-opener", "A function's or parameter's tag written twice, with nothing "
        "between, is kept once.", lossless=False),
    Rule("tags.early-closer", "A function's closing tag that stands before its parameters is "
        "dropped.", lossless=False),
    Rule("tags.lost-bracket", "A function's tag that lost its first character gets it back.",
        lossless=False),
    Rule("tags.bare-name", "A line that is exactly a known tool's name is read as the function's "
        "tag.", lossless=False),
    Rule("tags.name-inside", "A parameter's name between its tags, with the value behind them, "
        "goes into the tag.", lossless=False),
    Rule("tags.self-closed", "A function's tag that closes itself is a call without parameters."),
    Rule("tags.key", "Tags that are missing around a parameter's name, or stand there twice, are "
        "put right where the schema says the name.", lossless=False),
    Rule("tags.prose", "Words before the first function of a block are dropped.", lossless=False),
    # repairs of YAML text
    Rule("yaml.fence", "A code fence around the YAML is dropped."),
    Rule("yaml.near-key", "A key with one wrong character is put right, where one reading fits.",
        lossless=False),
    Rule("yaml.tabs", "Tabs before every line are dropped."),
    Rule("yaml.raw-text", "A line that is no YAML is quoted as it stands, where the schema wants "
        "a text."),
    # repairs of pythonic text
    Rule("pythonic.raw-break", "A raw line break inside a string is escaped."),
    Rule("pythonic.json-literal", "true, false and null are read as True, False and None."),
    Rule("pythonic.escaped-name", "A backslash that Markdown puts before an underscore of a name "
        "is dropped."),
    Rule("pythonic.assignment", "A variable that the call's result is assigned to is dropped.",
        lossless=False),
    Rule("pythonic.set", "A set is read as a list of its items, in their order."),
    Rule("pythonic.leading-zeros", "Zeros in front of an integer are dropped."),
    Rule("pythonic.inner-quote", "A quote inside a string of the same quotes is escaped."),
    Rule("pythonic.print", "A `print(…)` around a call is dropped.", lossless=False),
    Rule("pythonic.quoted-name", "Quotes around the name of a call are dropped."),
    Rule("pythonic.quoted-call", "A call that stands in quotes as a whole is taken out of them."),
    Rule("pythonic.bare-word", "Words without quotes are a text where the schema has a text.",
        lossless=False),
    # repairs of objects with bare keys
    Rule("barekey.head", "The word before a call's name is missing."),
    Rule("barekey.no-object", "A call without an object has no arguments."),
    Rule("barekey.parentheses", "Parentheses around the arguments are read as braces."),
    Rule("barekey.equals", "An equals sign between key and value is read as a colon."),
    Rule("barekey.quoted-key", "A key in quotes is read as a bare one."),
    Rule("barekey.quotes", "A text in ordinary quotes gets those of the format."),
    Rule("barekey.colon", "A colon before the word that begins a call is dropped, and one alone "
        "is read as that word."),
    Rule("barekey.tag", "`<call>` before a name is read as the word that begins a call."),
    Rule("barekey.comma", "A comma that is missing behind a text is added."),
    Rule("barekey.open-text", "A text that no quote closes ends at the brace of its call.",
        lossless=False),
    Rule("barekey.fraction", "A number that ends in its point gets a zero behind it."),
    Rule("barekey.text", "A text without quotes gets those of the format, where the schema has a "
        "text.", lossless=False),
    # reading a value as a call
    Rule("read.alias-name", "The tool's name stood under another key than the format's own."),
    Rule("read.name-in-body", "The tool's name stood in the body, behind an id that names none."),
    Rule("read.escaped-name", "A backslash that Markdown puts before an underscore of a tool's or "
        "parameter's name is dropped."),
    Rule("read.dotted-name", "Underscores stood for the dots of the only tool's name so spelt."),
    Rule("read.doubled-name", "The tool's name stood before itself, as a namespace of its own."),
    Rule("read.module-name", "A module, such as `functions.`, stood before the tool's name."),
    Rule("read.leaked-mark", "Marks of a format that a server left at the tool's name are "
        "dropped."),
    Rule("read.trimmed-name", "White space around the tool's name is dropped."),
    Rule("read.name-is-key", "The only key is the tool's name, and its value the arguments."),
    Rule("read.alias-arguments", "The arguments stood under another key than the format's own."),
    Rule("read.double-encoded", "The arguments were JSON text inside a JSON string."),
    Rule("read.plain-arguments", "The arguments stood as an object where JSON text belongs."),
    Rule("read.list-wrapper", "The calls stood in the `tool_calls` of an object."),
    Rule("read.function-wrapper", "The call was wrapped in an OpenAI function object."),
    Rule("read.empty-arguments", "Arguments that are missing or null are read as none."),
    Rule("read.strict-null", "Null that only a strict mode asked for is a parameter left out."),
    Rule("read.flat-arguments", "The arguments stood beside the name instead of under a key of "
        "their own."),
    Rule("read.positional", "Positional arguments take the parameters' names in schema order.",
        lossless=False),
    Rule("read.dict-argument", "A dict that is the only argument, with the parameters' names as "
        "its keys, holds the arguments."),
    Rule("read.wrapper", "An element around the parameters that is none of them is taken off.",
        lossless=False),
    Rule("read.json-body", "The element's body was JSON instead of elements."),
    Rule("read.python-body", "The body was calls written as Python instead of JSON."),
    Rule("read.tags-in-value", "Tags of the format inside a value are text of that value."),
    Rule("read.look-alike", "Characters that look like those of the format's marks, such as other "
        "bars, are read as them."),
    Rule("read.attributes", "Attributes of a call's element that name parameters are arguments."),
    Rule("read.list-element", "An element around the items of a list is taken off."),
    Rule("read.text-body", "The element's body is the value of the tool's only string parameter.",
        lossless=False),
    Rule("read.element-parameters", "The parameters were written as elements named after them."),
    Rule("read.value-element", "An element named value around the value of a parameter is taken "
        "off.", lossless=False),
    Rule("read.equal-duplicate", "A parameter or key that stands twice with equal values is kept "
        "once."),
    # coercion by schema
    Rule("coerce.integer-from-string", "Text that is exactly an integer becomes one."),
    Rule("coerce.number-from-string", "Text that is exactly a JSON number becomes one."),
    Rule("coerce.boolean-from-string", "The words true and false become booleans."),
    Rule("coerce.boolean-from-yes-no", "The word yes or no becomes a boolean, where the schema "
        "admits only that."),
    Rule("coerce.boolean-from-on-off", "The word on or off becomes a boolean, where the schema "
        "admits only that."),
    Rule("coerce.boolean-from-y-n", "The letter y or n becomes a boolean, where the schema admits "
        "only that."),
    Rule("coerce.boolean-from-t-f", "The letter t or f becomes a boolean, where the schema admits "
        "only that."),
    Rule("coerce.boolean-from-1-0", "The digit 1 or 0 becomes a boolean, where the schema admits "
        "only that."),
    Rule("coerce.null-from-string", "The word null becomes null where the schema has null and no "
        "string."),
    Rule("coerce.value-from-raw-text", "Raw text that is JSON of another type becomes that, where "
        "the schema names the type beside text."),
    Rule("coerce.string-from-number", "A number becomes its text where the schema wants a string."),
    Rule("coerce.string-from-boolean", "A boolean becomes its word where the schema wants a "
        "string."),
    Rule("coerce.trim", "White space around a value is dropped."),
    Rule("coerce.unquote", "Quotes around an enum value are dropped."),
    Rule("coerce.enum-from-string", "Text becomes the only enum member or constant it can mean."),
    Rule("coerce.json-from-string", "JSON text becomes the object or array it says."),
    Rule("coerce.array-from-lines", "Lines become the items of an array.", lossless=False),
    Rule("coerce.array-from-csv", "Text between commas becomes the items of an "
        "array.", lossless=False),
    Rule("coerce.array-from-empty", "Empty text becomes an empty array.", lossless=False),
    Rule("coerce.wrap-array", "A single value becomes an array of one."),
    Rule("coerce.item-list", "An object with the one key 'item' becomes an array."),
    Rule("coerce.numeric-keys", "An object with only numeric keys becomes an array in their "
        "order."),
    Rule("coerce.single-key-array", "An object whose one key holds an array becomes that "
        "array.", lossless=False),
    Rule("coerce.go-parse-float", "Text that Go's strconv.ParseFloat takes becomes that number."),
    Rule("coerce.go-parse-int", "Text that Go's strconv.ParseInt takes becomes that integer."),
    Rule("coerce.go-parse-bool", "Text that Go's strconv.ParseBool takes becomes that boolean."),
    Rule("coerce.lossy", "Something that validates is put in the value's place.", lossless=False),
    Rule("coerce.wrapper", "A single parameter that is none of the tool's, and holds nothing but "
        "those, is taken off."),
    Rule("coerce.unwrap-single", "An object with one key becomes its value.", lossless=False),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of complaint.

    lossless: of a code that says how a call was recovered, whether that guessed or dropped nothing,
    or None for every other code.
    """

    id: str
    sentence: str
    lossless: bool | None = None


_CODES = (
    Code("call.truncated", "The text ended before the call was complete; it must not be executed."),
    Code("call.repeated", "A call without its closer stands twice, and is one call."),
    Code("call.repeated-set", "Behind words the answer says a call again, which is executed once."),
    Code(
        "call.repeated-opener",
        "The opener stands several times in a row; one call begins.",
        lossless=True,
    ),
    Code("call.missing-closer", "The closer is missing, but the body is complete.", lossless=True),
    Code(
        "call.wrong-closer",
        "The body is whole, but another format's closer stands behind it.",
        lossless=False,
    ),
    Code(
        "call.after-open-reasoning",
        "The call stood in reasoning that was never closed, and nothing followed it.",
        lossless=False,
    ),
    Code(
        "call.rescued-closer",
        "A closer that stood inside an unterminated string was taken as the closer.",
        lossless=False,
    ),
    Code("call.unknown-tool", "The name is none of the tools given."),
    Code(
        "call.echoed",
        "The call's own text stands in the request, where the model did not write it; it must not "
        "be executed.",
    ),
    Code(
        "call.inside-value",
        "The call stands inside a value of another call that does not end before it: it is shown, "
        "and must not be executed.",
    ),
    Code(
        "call.in-reasoning",
        "The call stands in reasoning that is closed behind it: it is shown, and must not be "
        "executed.",
    ),
    Code(
        "call.after-turn",
        "The call is after the end of the model's own turn, in one that it made up.",
    ),
    Code(
        "call.looks-like",
        "Text looks like a call of a tool on offer, and no call was read from it.",
    ),
    Code(
        "call.only-in-reasoning",
        "The only call of the answer stands in its reasoning, and nothing follows it.",
    ),
    Code(
        "call.beside-text",
        "A call of the server's has no arguments, and the text beside it holds the same call with "
        "some; it must not be executed.",
    ),
    Code("call.in-content", "A server's message has no calls, and its content holds one."),
    Code("call.escaped", "The text holds a call whose marks are escaped as in HTML."),
    Code("response.no-call", "The response says that it ends with a call, and holds none."),
    Code("call.stray-closer", "A closer stands in the text, and no call that it closes."),
    Code(
        "call.missing-opener",
        "The answer begins with a whole body, whose opener stood in the prompt.",
        lossless=False,
    ),
    Code("call.is-definition", "The object describes a tool, and calls none."),
    Code("call.no-name", "The body was read, but it names no tool."),
    Code("call.not-an-object", "The arguments are no JSON object."),
    Code("call.quoted-example", "A call that is quoted is an example, not a call."),
    Code("call.recovered", "The call stood outside its format.", lossless=False),
    Code(
        "choice.no-call",
        "A call was asked for, and the answer is not exactly one of a tool that may be called.",
    ),
    Code("choice.further-call", "Only one call may be made, and this is a further one."),
    Code("decode.empty", "There is nothing between opener and closer."),
    Code("decode.json", "The body is no JSON and cannot be repaired without inventing something."),
    Code("decode.words", "Words that are no tool's name are in front of the JSON of the call."),
    Code("decode.xml", "The body is no XML and cannot be repaired without inventing something."),
    Code(
        "decode.tags",
        "The body holds no function in tags that can be read without inventing something.",
    ),
    Code(
        "decode.yaml", "The body is no YAML mapping that can be read without inventing something."
    ),
    Code("decode.bare", "The body is no call with bare keys."),
    Code("decode.pythonic", "The body is no list of calls in Python syntax."),
    Code("decode.loose-text", "Text beside the parameters is no argument, and was left out."),
    Code("decode.attribute", "An attribute names no parameter, or may be an argument."),
    Code("decode.truncated-value", "A value is cut off, so what it should have been is unknown."),
    Code("decode.ambiguous", "The body can be read in more than one way."),
    Code("decode.duplicate-key", "A key stands twice with different values."),
    Code("decode.duplicate-string-tag", "A string parameter stands twice."),
    Code("decode.too-deep", "The value nests deeper than the limit."),
    Code(
        "coerce.not-finite",
        "Coercion gave a number that is not finite; the arguments stay as they were.",
    ),
    Code(
        "coerce.budget",
        "Value and schema take too many steps to compare; the arguments stay as they were.",
    ),
    Code("validate.type", "A value has another type than the schema says."),
    Code("validate.required", "A required argument is missing."),
    Code("validate.enum", "A value is none of the values the schema lists."),
    Code("validate.additional", "An argument is not in the schema."),
    Code("validate.constraint", "A value breaks another rule of the schema."),
    Code(
        "validate.slow-pattern",
        "A pattern of the schema takes too long on a text, so nothing is validated.",
    ),
    Code("validate.too-deep", "The value nests too deep to be validated."),
    Code(
        "validate.budget",
        "The schema branches too often for this value, so nothing is validated.",
    ),
    Code(
        "validate.type-name",
        "The tool's schema names a type that JSON Schema does not have; it is read as the one it "
        "means.",
    ),
    Code("validate.schema", "The tool's schema itself is broken, so nothing can be validated."),
    Code(
        "foreign.text-not-in-raw",
        "A text that somebody else's parser says does not stand in the raw text.",
    ),
    Code(
        "foreign.ambiguous-place",
        "A text that somebody else's parser says stands in more than one place.",
    ),
    Code(
        "foreign.dropped-text",
        "Somebody else's parser accounts for these characters in none of its parts.",
    ),
    Code(
        "foreign.no-place",
        "Somebody else's parser says a call that no characters of the text stand for.",
    ),
    Code(
        "foreign.bad-part", "Somebody else's parser returned a part that is neither text nor call."
    ),
    Code("foreign.reported", "Somebody else's parser reported an error of its own."),
    Code(
        "read.internal-error",
        "The toolkit itself failed at this answer, which is left unread or without a score; others "
        "are not touched by it.",
    ),
    Code("parser.failed", "The parser itself failed on this body; the text is kept as it was."),
)

RULES: dict[str, Rule] = {r.id: r for r in _RULES}
CODES: dict[str, Code] = {c.id: c for c in _CODES}


def rule_of(rule_id: str) -> Rule:
    """Return the rule of that id. Raises UnknownName."""
    try:
        return RULES[rule_id]
    except KeyError:
        raise UnknownName(
            "no rule of this id",
            got=rule_id,
            hint="see toolparse_lab.core.rules.RULES",
            code="unknown-rule",
        ) from None

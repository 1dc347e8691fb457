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

    A call with a lossless rule counts as the model's own, so each rule says which it is, and why.
    """

    id: str
    lossless: bool
    sentence: str
    why: str

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
    Rule("rjson.trailing-comma", True, "A comma before a closing bracket is dropped.",
        "no value can be meant after it"),
    Rule("rjson.missing-comma", False, "Two neighbours without a comma get one.",
        "the two may have been one value, or another between them was lost"),
    Rule("rjson.missing-colon", False, "A key and its value without a colon get one.",
        "another sign, or a value of its own, may have been meant"),
    Rule("rjson.missing-quote", False,
        "A quote that is missing at one end of a string is added, where one reading is nearest.",
        "where the string was to end is a guess"),
    Rule("rjson.extra-sign", False,
        "A bracket, quote or separator too many is dropped, where one reading is nearest.",
        "another sign may be the one too many"),
    Rule("rjson.wrong-sign", False,
        "A sign that looks like the right one, or is in its place, is replaced, where one "
        "reading is nearest.",
        "the text there may have been meant"),
    Rule("rjson.swapped-signs", False,
        "A sign that changed places with its neighbour is put back, where one reading is nearest.",
        "another pair may have been meant"),
    Rule("rjson.literal-newline", True,
        "A line break written as an escape between two values is read as white space.",
        "between values an escape can mean nothing else"),
    Rule("rjson.single-quotes", True, "A string in single quotes is read as one in double quotes.",
        "the inside keeps its meaning"),
    Rule("rjson.smart-quotes", True,
        "A string in typographic quotes is read as one in double quotes.",
        "the inside keeps its meaning"),
    Rule("rjson.triple-quotes", True,
        "A string between triple quotes is read as one in double quotes.",
        "the inside keeps its meaning"),
    Rule("rjson.unquoted-key", True, "A bare word before a colon is read as a key.",
        "a key is always a string"),
    Rule("rjson.unquoted-value", False, "A bare word is read as a string.",
        "it may be a constant or a name, and its end is a guess"),
    Rule("rjson.python-literal", True, "True, False and None are read as true, false and null.",
        "Python's words have one meaning in JSON"),
    Rule("rjson.comment", False, "A comment is dropped.",
        "its words are dropped, and may have been a part of the value"),
    Rule("rjson.raw-control", True, "A raw control character inside a string is escaped.",
        "the same character, escaped"),
    Rule("rjson.bad-escape", True, "A backslash that begins no JSON escape is kept as a backslash.",
        "the same characters, and no escape could be meant"),
    Rule("rjson.escaped-name", True,
        "A backslash that Markdown puts before an underscore of a key is dropped.",
        "no name has a backslash"),
    Rule("rjson.unescaped-quote", False, "A quote inside a string is escaped.",
        "the string may have been meant to end there"),
    Rule("rjson.missing-bracket", False, "Closing brackets that are missing at the end are added.",
        "the text may be cut, or a member missing"),
    Rule("rjson.missing-opener", False, "An opening brace that is missing at the start is added.",
        "what was before it is unknown"),
    Rule("rjson.extra-bracket", False, "A closing bracket that closes nothing is dropped.",
        "the container may have been meant to go on"),
    Rule("rjson.extra-comma", False,
        "A comma too many between the members of an object is dropped.",
        "a member between may have been lost"),
    Rule("rjson.loose-number", True,
        "A number with a plus sign or a bare point is written as JSON writes it.",
        "the same number"),
    Rule("rjson.escaped-apostrophe", True, "A backslash before an apostrophe is dropped.",
        "an apostrophe needs no escape, and means itself"),
    Rule("rjson.odd-space", True, "White space that JSON does not know is read as a space.",
        "between values space means nothing"),
    Rule("rjson.joined-strings", True, "Strings joined by a plus sign are read as one.",
        "the plus sign has one meaning between strings"),
    Rule("rjson.prose", False, "Words around the only JSON value are dropped.",
        "words are dropped that may change the meaning"),
    Rule("rjson.name-before", False,
        "A tool's name in front of its arguments is read as their call.",
        "that the word is the call's name is a guess"),
    Rule("rjson.fence", True, "A code fence around the JSON value is dropped.",
        "a fence is markup and no part of the value"),
    Rule("rjson.equal-duplicate-key", True, "A key written twice with equal values is kept once.",
        "both values are the same"),
    Rule("rjson.double-key", False, "Of a key with two values one is left out, in a reading.",
        "the other value may be the one that was meant; never done unasked"),
    # repairs of XML text
    Rule("rxml.close-tag-space", True, "White space inside a closing tag is dropped.",
        "the name is the same"),
    Rule("rxml.unclosed-tag", False, "A tag that is still open at the end of its parent is closed.",
        "where the element was to end is a guess"),
    Rule("rxml.mismatched-tag", False,
        "A closing tag of a wrong name closes the only tag that is open.",
        "the name may be the right one, and the opener wrong"),
    Rule("rxml.stray-close-tag", False, "A closing tag that closes nothing is dropped.",
        "an opener may have been lost"),
    Rule("rxml.near-tag", False,
        "A tag with one wrong character is put right, where one reading fits.",
        "another name may have been meant"),
    Rule("rxml.loose-text", False, "Text next to the parameters of a call's element is dropped.",
        "text of the model is dropped"),
    # repairs of tags with raw text
    Rule("tags.spelling", True, "A tag spelt in another way is read as the format's own.",
        "the tag has one meaning in either spelling"),
    Rule("tags.unclosed-parameter", False,
        "A value without its closing tag is closed before the next tag.",
        "where the value was to end is a guess"),
    Rule("tags.unclosed-function", False, "A function without its closing tag is closed.",
        "a parameter may be missing"),
    Rule("tags.mismatched-closer", False,
        "A closing tag of another word is read as the format's own.",
        "the value may have been meant to go on"),
    Rule("tags.doubled-closer", False, "A closing tag written twice is kept once.",
        "one of them may belong to the value"),
    Rule("tags.doubled-opener", False,
        "A function's or parameter's tag written twice, with nothing between, is kept once.",
        "something between may have been lost"),
    Rule("tags.early-closer", False,
        "A function's closing tag that comes before its parameters is dropped.",
        "the parameters after it may belong to no call"),
    Rule("tags.lost-bracket", False, "A function's tag that lost its first character gets it back.",
        "the line may be text"),
    Rule("tags.bare-name", False,
        "A line that is exactly a known tool's name is read as the function's tag.",
        "the line may be text"),
    Rule("tags.name-inside", False,
        "A parameter's name between its tags, with the value after them, goes into the tag.",
        "the text may be a value"),
    Rule("tags.self-closed", True,
        "A function's tag that closes itself is a call without parameters.",
        "such a tag has no inside, and a call without parameters has none either"),
    Rule("tags.key", False,
        "Tags that are missing around a parameter's name, or are there twice, are put right "
        "where the schema says the name.",
        "the name may be part of a value"),
    Rule("tags.prose", False, "Words before the first function of a block are dropped.",
        "text of the model is dropped"),
    # repairs of YAML text
    Rule("yaml.fence", True, "A code fence around the YAML is dropped.",
        "a fence is markup and no part of the value"),
    Rule("yaml.near-key", False,
        "A key with one wrong character is put right, where one reading fits.",
        "another key may have been meant"),
    Rule("yaml.tabs", True, "Tabs before every line are dropped.",
        "all lines have them, so that they say nothing"),
    Rule("yaml.raw-text", True,
        "A line that is no YAML is quoted as it stands, where the schema wants a text.",
        "the same characters, where only a text is legal"),
    # repairs of pythonic text
    Rule("pythonic.raw-break", True, "A raw line break inside a string is escaped.",
        "the same character, escaped"),
    Rule("pythonic.json-literal", True, "true, false and null are read as True, False and None.",
        "JSON's words have one meaning in Python"),
    Rule("pythonic.escaped-name", True,
        "A backslash that Markdown puts before an underscore of a name is dropped.",
        "no name has a backslash"),
    Rule("pythonic.assignment", False,
        "A variable that the call's result is assigned to is dropped.",
        "the variable's name is dropped"),
    Rule("pythonic.set", True, "A set is read as a list of its items, in their order.",
        "JSON has no sets, and no item is lost"),
    Rule("pythonic.leading-zeros", True, "Zeros in front of an integer are dropped.",
        "Python has no such number, and its value is the same"),
    Rule("pythonic.inner-quote", True, "A quote inside a string of the same quotes is escaped.",
        "all characters stay, and the call goes on after the last quote"),
    Rule("pythonic.print", False, "A `print(…)` around a call is dropped.",
        "that the call is to be executed and not shown is a guess"),
    Rule("pythonic.stray-bracket", True, "A bracket that closes nothing after the list is dropped.",
        "nothing follows it, and nothing is open"),
    Rule("pythonic.quoted-name", True, "Quotes around the name of a call are dropped.",
        "a name is the same with quotes"),
    Rule("pythonic.quoted-call", True,
        "A call that is in quotes as a whole is taken out of them.",
        "the call is whole, and nothing else is in the quotes"),
    Rule("pythonic.bare-word", False,
        "Words without quotes are a text where the schema has a text.",
        "it may be a variable's name"),
    # repairs of objects with bare keys
    Rule("barekey.head", True, "The word before a call's name is missing.",
        "the name is a tool's, and the word says nothing more"),
    Rule("barekey.no-object", True, "A call without an object has no arguments.",
        "a call without an object says no argument"),
    Rule("barekey.parentheses", True, "Parentheses around the arguments are read as braces.",
        "they hold the same members"),
    Rule("barekey.equals", True, "An equals sign between key and value is read as a colon.",
        "the sign has one meaning between key and value"),
    Rule("barekey.quoted-key", True, "A key in quotes is read as a bare one.",
        "a key is the same with quotes"),
    Rule("barekey.quotes", True, "A text in ordinary quotes gets those of the format.",
        "the inside keeps its meaning"),
    Rule("barekey.colon", True,
        "A colon before the word that begins a call is dropped, and one alone is read as that "
        "word.",
        "the sign says nothing but that a call begins"),
    Rule("barekey.tag", True, "`<call>` before a name is read as the word that begins a call.",
        "the tag says nothing but that a call begins"),
    Rule("barekey.comma", True, "A comma that is missing after a string is added.",
        "the closing quote and the next key say where the text ends"),
    Rule("barekey.open-text", False, "A text that no quote closes ends at the brace of its call.",
        "where the text was to end is a guess"),
    Rule("barekey.fraction", True, "A number that ends in its point gets a zero after it.",
        "the same number"),
    Rule("barekey.text", False,
        "A text without quotes gets those of the format, where the schema has a text.",
        "it may be a constant, and its end is a guess"),
    # reading a value as a call
    Rule("read.alias-name", True, "The tool's name stood under another key than the format's own.",
        "the value under the key is a known name"),
    Rule("read.name-in-body", True,
        "The tool's name was in the body, after an id that names none.",
        "the name is a tool's, and the id is none's"),
    Rule("read.escaped-name", True,
        "A backslash that Markdown puts before an underscore of a tool's name is dropped.",
        "no name has a backslash"),
    Rule("read.dotted-name", True,
        "Underscores stood for the dots of the only tool's name so spelt.",
        "no other tool has a name so written"),
    Rule("read.doubled-name", True,
        "The tool's name stood before itself, as a namespace of its own.",
        "what is left is the tool's whole name"),
    Rule("read.module-name", True, "A module, such as `functions.`, stood before the tool's name.",
        "a module is no part of a tool's name"),
    Rule("read.leaked-mark", True,
        "Marks of a format that a server left at the tool's name are dropped.",
        "marks are the format's own"),
    Rule("read.trimmed-name", True, "White space around the tool's name is dropped.",
        "no name begins or ends with white space"),
    Rule("read.name-is-key", True, "The only key is the tool's name, and its value the arguments.",
        "nothing but the call is in the object"),
    Rule("read.alias-arguments", True,
        "The arguments stood under another key than the format's own.",
        "the value under the key holds the arguments as they are"),
    Rule("read.double-encoded", True, "The arguments were JSON text inside a JSON string.",
        "the text says this object and nothing else"),
    Rule("read.plain-arguments", True, "The arguments stood as an object where JSON text belongs.",
        "the same object"),
    Rule("read.list-wrapper", True, "The calls stood in the `tool_calls` of an object.",
        "the calls inside are whole"),
    Rule("read.function-wrapper", True, "The call was wrapped in an OpenAI function object.",
        "the call inside is whole"),
    Rule("read.empty-arguments", True, "Arguments that are missing or null are read as none.",
        "nothing was said"),
    Rule("read.strict-null", True,
        "Null that only a strict mode asked for is a parameter left out.",
        "the strict form has no other way to leave a parameter out"),
    Rule("read.flat-arguments", True,
        "The arguments were next to the name instead of under a key of their own.",
        "all other members are parameters of the tool"),
    Rule("read.positional", False,
        "Positional arguments take the parameters' names in schema order.",
        "the order may be another"),
    Rule("read.dict-argument", True,
        "A dict that is the only argument, with the parameters' names as its keys, holds the "
        "arguments.",
        "its keys are the parameters' names"),
    Rule("read.wrapper", False,
        "An element around the parameters that is none of them is taken off.",
        "the element's name is dropped, and may say something"),
    Rule("read.json-body", True, "The element's body was JSON instead of elements.",
        "the JSON says the arguments in full"),
    Rule("read.python-body", True, "The body was calls written as Python instead of JSON.",
        "the calls are whole in their own notation"),
    Rule("read.other-format", True,
        "Behind the format's own opener stood another format's body, and was read as that.",
        "the other format reads it strictly, and the tool is on offer"),
    Rule("read.tags-in-value", True, "Tags of the format inside a value are text of that value.",
        "all characters of the value stay"),
    Rule("read.look-alike", True,
        "Characters that look like those of the format's marks, such as other bars, are read as "
        "them.",
        "the tags are the format's own in all else"),
    Rule("read.attributes", True,
        "Attributes of a call's element that name parameters are arguments.",
        "each names a parameter and has its value"),
    Rule("read.list-element", True, "An element around the items of a list is taken off.",
        "it holds items and nothing else"),
    Rule("read.text-body", False,
        "The element's body is the value of the tool's only string parameter.",
        "that the body is this parameter's value is a guess"),
    Rule("read.element-parameters", True,
        "The parameters were written as elements named after them.",
        "each element names a parameter"),
    Rule("read.value-element", False,
        "An element named value around the value of a parameter is taken off.",
        "the value may have been meant to hold the element"),
    Rule("read.equal-duplicate", True,
        "A parameter or key that occurs twice with equal values is kept once.",
        "both values are the same"),
    # coercion by schema
    Rule("coerce.integer-from-string", True, "Text that is exactly an integer becomes one.",
        "the text says this integer and nothing else"),
    Rule("coerce.number-from-string", True, "Text that is exactly a JSON number becomes one.",
        "the text says this number and nothing else"),
    Rule("coerce.boolean-from-string", True, "The words true and false become booleans.",
        "the word says this value and nothing else"),
    Rule("coerce.boolean-from-yes-no", True,
        "The word yes or no becomes a boolean, where the schema admits only that.",
        "where only booleans are legal the word has one meaning"),
    Rule("coerce.boolean-from-on-off", True,
        "The word on or off becomes a boolean, where the schema admits only that.",
        "where only booleans are legal the word has one meaning"),
    Rule("coerce.boolean-from-y-n", True,
        "The letter y or n becomes a boolean, where the schema admits only that.",
        "where only booleans are legal the letter has one meaning"),
    Rule("coerce.boolean-from-t-f", True,
        "The letter t or f becomes a boolean, where the schema admits only that.",
        "where only booleans are legal the letter has one meaning"),
    Rule("coerce.boolean-from-1-0", True,
        "The digit 1 or 0 becomes a boolean, where the schema admits only that.",
        "where only booleans are legal the digit has one meaning"),
    Rule("coerce.null-from-string", True,
        "The word null or None becomes null where the schema has null and no string.",
        "where no text is legal the word has one meaning"),
    Rule("coerce.value-from-raw-text", True,
        "Raw text that is JSON of another type becomes that, where the schema names the type "
        "next to text.",
        "raw text has no quotes, and the value's own text is the same"),
    Rule("coerce.string-from-number", True,
        "A number becomes its text where the schema wants a string.",
        "the number's own characters"),
    Rule("coerce.string-from-boolean", True,
        "A boolean becomes its word where the schema wants a string.",
        "JSON's own word"),
    Rule("coerce.trim", True, "White space around a value is dropped.",
        "the member without the space is legal, and the text is not"),
    Rule("coerce.unquote", True, "Quotes around an enum value are dropped.",
        "the member without the quotes is legal, and the text is not"),
    Rule("coerce.enum-from-string", True,
        "Text becomes the only enum member or constant it can mean.",
        "no other member can be meant"),
    Rule("coerce.json-from-string", True, "JSON text becomes the object or array it says.",
        "the text says this value and nothing else"),
    Rule("coerce.array-from-lines", False, "Lines become the items of an array.",
        "a line break may belong to an item"),
    Rule("coerce.array-from-csv", False, "Text between commas becomes the items of an array.",
        "a comma may belong to an item"),
    Rule("coerce.array-from-empty", False, "Empty text becomes an empty array.",
        "it may mean one empty item"),
    Rule("coerce.wrap-array", True, "A single value becomes an array of one.",
        "the item is the same"),
    Rule("coerce.item-list", True, "An object with the one key 'item' becomes an array.",
        "the key is what XML leaves of a list's elements"),
    Rule("coerce.numeric-keys", True,
        "An object with only numeric keys becomes an array in their order.",
        "the keys say the order and nothing else"),
    Rule("coerce.single-key-array", False,
        "An object whose one key holds an array becomes that array.",
        "the key is dropped"),
    Rule("coerce.go-parse-float", True,
        "Text that Go's strconv.ParseFloat takes becomes that number.",
        "strconv takes no text that says anything else"),
    Rule("coerce.go-parse-int", True, "Text that Go's strconv.ParseInt takes becomes that integer.",
        "strconv takes no text that says anything else"),
    Rule("coerce.go-parse-bool", True,
        "Text that Go's strconv.ParseBool takes becomes that boolean.",
        "strconv takes no text that says anything else"),
    Rule("coerce.lossy", False, "Something that validates is put in the value's place.",
        "the value is made up"),
    Rule("coerce.unknown-argument", False, "An argument that the tool does not have is dropped.",
        "it may have said something"),
    Rule("coerce.wrapper", True,
        "A single parameter that is none of the tool's, and holds nothing but those, is taken "
        "off.",
        "the key names arguments, and the tool has all that is inside"),
    Rule("coerce.unwrap-single", False, "An object with one key becomes its value.",
        "the key is dropped, and may say something"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of complaint.

    lossless: of a code that says how a call was recovered, whether that guessed or dropped nothing,
    or None for every other code.
    """

    id: str
    sentence: str
    lossless: bool | None


_SENTENCES = {
    "call.truncated": "The text ended before the call was complete; it must not be executed.",
    "call.repeated": "A call without its closer occurs twice, and is one call.",
    "call.repeated-set":
        "After words, or in another list, the answer says a call again, which is executed once.",
    "call.repeated-opener": "The opener occurs several times in a row; one call begins.",
    "call.too-many": "So many calls of the answer cannot be read that what follows them is text.",
    "call.missing-closer": "The closer is missing, but the body is complete.",
    "call.wrong-closer": "The body is whole, but another format's closer follows it.",
    "call.after-open-reasoning":
        "The call is at the end of reasoning that was never closed. It must not be executed, "
        "unless its opener is known to end the model's reasoning.",
    "call.rescued-closer":
        "A closer that stood inside an unterminated string was taken as the closer.",
    "call.unknown-tool": "The name is none of the tools given.",
    "call.unknown-argument":
        "The tool has no such parameter, and its schema does not say whether others may be there.",
    "call.echoed":
        "The call's own text is in the request, where the model did not write it; it must not be "
        "executed.",
    "call.inside-value":
        "The call is inside a value of another call that does not end before it: it is shown, and "
        "must not be executed.",
    "call.in-reasoning":
        "The call is in reasoning that is closed only after it: it is shown, and must not be "
        "executed.",
    "call.after-turn": "The call is after the end of the model's own turn, in one that it made up.",
    "call.replacement-character":
        "Arguments hold U+FFFD, which stands for a character that a server or a client cut in two.",
    "call.looks-like": "Text looks like a call of a tool on offer, and no call was read from it.",
    "call.only-in-reasoning":
        "The only call of the answer is in its reasoning, and nothing follows it.",
    "call.beside-text":
        "A call of the server's has no arguments, and the text next to it holds the same call "
        "with some; it must not be executed.",
    "call.in-content": "A server's message has no calls, and its content holds one.",
    "call.escaped": "The text holds a call whose marks are escaped as in HTML.",
    "response.cut": "The stream of the response broke off; a call may be lost.",
    "response.no-call": "The response says that it ends with a call, and holds none.",
    "response.unread-part":
        "The response has a part of a kind that nobody knows, which may be a call.",
    "call.stray-closer": "The text has a closer, and no call that it closes.",
    "call.missing-opener": "The answer begins with a whole body, whose opener stood in the prompt.",
    "call.is-definition": "The object describes a tool, and calls none.",
    "call.no-name": "The body was read, but it names no tool.",
    "call.not-an-object": "The arguments are no JSON object.",
    "call.quoted-example": "A call that is quoted is an example, not a call.",
    "call.held-back":
        "The text only shows the call, as the evidence says: it is a draft, and must not be "
        "executed.",
    "call.recovered": "The call stood outside its format.",
    "call.damaged-mark": "A delimiter of the call is damaged, by a character or two.",
    "choice.no-call":
        "A call was asked for, and the answer is not exactly one of a tool that may be called.",
    "choice.further-call": "Only one call may be made, and this is a further one.",
    "decode.empty": "There is nothing between opener and closer.",
    "decode.json": "The body is no JSON and cannot be repaired without inventing something.",
    "decode.words": "Words that are no tool's name are in front of the JSON of the call.",
    "decode.xml": "The body is no XML and cannot be repaired without inventing something.",
    "decode.tags":
        "The body holds no function in tags that can be read without inventing something.",
    "decode.yaml": "The body is no YAML mapping that can be read without inventing something.",
    "decode.bare": "The body is no call with bare keys.",
    "decode.pythonic": "The body is no list of calls in Python syntax.",
    "decode.loose-text": "Text next to the parameters is no argument, and was left out.",
    "decode.attribute": "An attribute names no parameter, or may be an argument.",
    "decode.truncated-value": "A value is cut off, so what it should have been is unknown.",
    "decode.ambiguous": "The body can be read in more than one way.",
    "decode.duplicate-key": "A key occurs twice with different values.",
    "decode.duplicate-string-tag": "A string parameter occurs twice.",
    "decode.too-deep": "The value nests deeper than the limit.",
    "coerce.not-finite":
        "Coercion gave a number that is not finite; the arguments stay as they were.",
    "coerce.budget":
        "Value and schema take too many steps to compare; the arguments stay as they were.",
    "validate.type": "A value has another type than the schema says.",
    "validate.required": "A required argument is missing.",
    "validate.enum": "A value is none of the values the schema lists.",
    "validate.additional": "An argument is not in the schema.",
    "validate.constraint": "A value breaks another rule of the schema.",
    "validate.slow-pattern":
        "A pattern of the schema takes too long on a text, so nothing is validated.",
    "validate.too-deep": "The value nests too deep to be validated.",
    "validate.budget": "The schema branches too often for this value, so nothing is validated.",
    "validate.type-name":
        "The tool's schema names a type that JSON Schema does not have; it is read as the one it "
        "means.",
    "validate.schema":
        "A place of the tool's schema is not as JSON Schema has it: it is read as it is meant, or "
        "left out, and all others hold.",
    "validate.unchecked":
        "The part of the tool's schema for a value cannot be used, so the value is unchecked.",
    "validate.no-schema": "Nothing of the tool's schema can be used, so that no call is valid.",
    "foreign.text-not-in-raw":
        "A string that somebody else's parser returns is not in the raw text.",
    "foreign.ambiguous-place":
        "A string that somebody else's parser returns is in more than one place.",
    "foreign.dropped-text":
        "Somebody else's parser accounts for these characters in none of its parts.",
    "foreign.no-place": "Somebody else's parser returns a call that no characters of the text say.",
    "foreign.bad-part": "Somebody else's parser returned a part that is neither text nor call.",
    "foreign.reported": "Somebody else's parser reported an error of its own.",
    "read.internal-error":
        "The toolkit itself failed at this answer, which is left unread or without a score; "
        "others are not touched by it.",
    "parser.failed": "The parser itself failed on this body; the text is kept as it was.",
}  # fmt: skip
# The codes that say how a call was recovered, and whether that guessed or dropped nothing.
_LOSSLESS = {
    "call.repeated-opener": True,
    "call.missing-closer": True,
    "call.wrong-closer": False,
    "call.after-open-reasoning": False,
    "call.rescued-closer": False,
    "call.missing-opener": False,
    "call.recovered": False,
    "call.damaged-mark": False,
}

RULES: dict[str, Rule] = {r.id: r for r in _RULES}
CODES: dict[str, Code] = {
    id: Code(id, sentence, _LOSSLESS.get(id)) for id, sentence in _SENTENCES.items()
}


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

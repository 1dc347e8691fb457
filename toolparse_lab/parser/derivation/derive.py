"""`Protocol.from_chat_template`: render probes, fit a family, read other probes back."""

# How it works. A template renders two groups of conversations with calls of invented names. From
# the first group each family of formats takes the constants that it would need (`fit_*.py`); each
# set of constants is a protocol. The second group decides: the first protocol that reads all of it
# back is the answer. Where none does, shipped protocols are tried whose openers stand in the
# answers. Where none of them does, the differing probe is the error.

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace

from ...core.errors import UnreadableTemplate, UnwritableCall
from ...core.types.derivation import Derivation
from ...formats.base import Protocol
from ...formats.derived import derived_protocol
from ...formats.registry import protocols
from ...formats.spec import SpecFields
from .account import account_of
from .answers import Answers, answers_of
from .fit_json import fit_json, fit_named, lost_in
from .fit_tags import fit_bare, fit_python, fit_tags
from .fitting import FERRY, Constants, Samples, beside_of, result_of, thought_of
from .probes import FIT, HELD, RESULT, tools_of
from .prompt import prompt_of
from .renderer import ChatTemplate, TemplateLike
from .verifying import Proof, prove, with_alike

_FITS: tuple[Callable[[Samples], Constants | None], ...] = (
    fit_json,
    fit_named,
    fit_tags,
    fit_bare,
    fit_python,
)

_BY_HAND = "describe the format: Protocol.from_spec, or a codec of your own as in CONTRIBUTING.md"


def from_chat_template(template: TemplateLike, id: str | None = None) -> Protocol:
    """Return the protocol of a chat template. See `Protocol.from_chat_template`."""
    own_id = checked_id(id)
    source = ChatTemplate.of(template)
    answers = answers_of(source)
    protocol_id = own_id or "template-" + hashlib.sha256(source.text.encode()).hexdigest()[:8]
    return protocol_of_answers(answers, protocol_id, "chat template", source)


def checked_id(id: str | None) -> str | None:
    """Return an id that frames and files can have, None for none. Raises BadSpec."""
    return None if id is None else SpecFields({"id": id}).id()


def protocol_of_answers(
    answers: Answers, protocol_id: str, origin: str, template: ChatTemplate | None = None
) -> Protocol:
    """Return the protocol that reads these answers.

    Raises UnreadableTemplate.

    origin: the kind of file they are from. template: the one that wrote them, to be asked again.
    """
    best = _best(answers, template, protocol_id)
    # Answers without any call would be read by every protocol.
    if best is None or best.differing or not any(check.whole for check in best.checks):
        raise _unreadable(best, answers)
    return _with_account(best, answers, origin, template)


def _best(answers: Answers, template: ChatTemplate | None, protocol_id: str) -> Proof | None:
    """Return the best proof: of a fitted protocol, or of a shipped one that does better."""
    proofs = [_proof(protocol, answers, template) for protocol in _fitted(answers, protocol_id)]
    best = min(proofs, key=lambda proof: proof.rank, default=None)
    if best is not None and best.rank[:2] == (0, 0) and _begins_with_token(best.protocol):
        return best
    row = best_row(answers)
    if row is None or (best is not None and best.rank[:2] < row.rank[:2]):
        return best
    if best is not None and best.rank[:2] == row.rank[:2] and _begins_with_token(best.protocol):
        return best
    constants = {
        "family": "row",
        "form": {"id": row.protocol.id},
        "lost": lost_in(Samples.of(answers)),
    }
    protocol = derived_protocol({"body": "derived", "id": protocol_id, **constants})
    return _proof(protocol, answers, template)


def _begins_with_token(protocol: Protocol) -> bool:
    """Return True if calls begin with a token, and not in the middle of a message's header.

    Messages with a recipient are written in more ways than a template shows: of those a shipped
    protocol knows more.
    """
    form = json.loads(protocol.spec)["form"]
    return not str(form.get("header", "<"))[:1].isalpha()


def _proof(protocol: Protocol, answers: Answers, template: ChatTemplate | None) -> Proof:
    """Return the proof of a protocol, values that its template does not tell apart included."""
    proof = _prove(protocol, answers)
    return proof if template is None else with_alike(proof, template, answers)


def _fitted(answers: Answers, protocol_id: str) -> Iterator[Protocol]:
    """Return the protocols of every family that fits the answers."""
    samples = Samples.of(answers)
    thought, result = thought_of(answers), result_of(answers, RESULT, answers.full)
    beside = [text for text in beside_of(answers) if text not in thought]
    for fit in _FITS:
        constants = fit(samples)
        if constants is None:
            continue
        constants |= {"body": "derived", "id": protocol_id}
        constants["markup"] = [*constants.get("markup", ()), *beside]
        if any(thought):
            constants["thought"] = thought
        if result:
            constants["result"] = result
        yield derived_protocol(constants)


def best_row(answers: Answers) -> Proof | None:
    """Return the proof of the shipped protocol that reads the answers best.

    Of those that read them alike, one that writes such an answer, and whose opener says most.
    """
    samples = Samples.of(answers)
    proofs = [
        (_prove(row, answers), _distance(row, samples.one), -length)
        for row, length in shipped_like(samples.first)
    ]
    return min(proofs, key=lambda rating: (rating[0].rank, *rating[1:]), default=(None,))[0]


def _distance(protocol: Protocol, text: str) -> int:
    """Return how unlike a protocol writes the call in an answer: 0 for not at all, 1 for other
    blanks, 2 for more.
    """
    tool = next(tool for tool in tools_of(FIT) if tool.name == FERRY.name)
    try:
        call = protocol.write_call(FERRY.name, json.dumps(dict(FERRY.arguments)), tool)
    except UnwritableCall:
        return 2
    if call in text:
        return 0
    return 1 if "".join(call.split()) in "".join(text.split()) else 2


def shipped_like(text: str) -> Iterator[tuple[Protocol, int]]:
    """Return the shipped protocols that may have written a text, and the length of their opener.

    Formats without any opener may have written everything.
    """
    tools = {tool.name: tool for tool in tools_of(FIT)}
    for protocol in protocols().values():
        heads = protocol.envelope.heads(tools)
        lengths = [len(head) for head in heads if head in text]
        if lengths or not heads:
            yield protocol, max(lengths, default=0)


def _prove(protocol: Protocol, answers: Answers) -> Proof:
    """Return the proof of a protocol on the probes that were not used to fit."""
    return prove(protocol, answers.others.values(), tools_of(HELD))


def _unreadable(best: Proof | None, answers: Answers) -> UnreadableTemplate:
    """Return the error with the first probe that no protocol reads back."""
    if best is None or not best.differing:
        answer = next(iter(answers.fit.values()))
        return UnreadableTemplate(
            "the calls of this template are of no known family",
            got=answers.fit["one call"].text,
            expected="JSON, tags around names and values, or Python",
            hint=_BY_HAND,
            probe="one call",
            text=answer.text,
        )
    check = best.differing[0]
    names = ", ".join(f"{call.name}({dict(call.arguments or {})})" for call in check.calls)
    return UnreadableTemplate(
        f"the calls of this template do not read back: {check.answer.probe.id}",
        got=f"{names or 'no call'} from {check.answer.text}",
        expected="; ".join(f"{c.name}({dict(c.arguments)})" for c in check.answer.probe.calls),
        hint=_BY_HAND,
        probe=check.answer.probe.id,
        text=check.answer.text,
    )


def _with_account(
    proof: Proof, answers: Answers, origin: str, template: ChatTemplate | None
) -> Protocol:
    """Return the protocol of a proof with its derivation."""
    row = best_row(answers)
    if row is not None and template is not None:
        row = with_alike(row, template, answers)
    same = row.protocol.id if row is not None and not row.differing else None
    derivation: Derivation = account_of(proof, answers, same, origin)
    if template is None:
        return replace(proof.protocol, derivation=derivation)
    # The template stays with the protocol, since it is the model's own prompt as well.
    constants = {**json.loads(proof.protocol.spec), "prompt": prompt_of(template)}
    return replace(derived_protocol(constants), derivation=derivation)

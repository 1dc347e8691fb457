"""The types of the keywords that `completion` and `acompletion` take."""

# The runtime hands every other keyword to litellm as it is. A type checker refuses one that is not
# here, as it would a misspelt one: send what only your endpoint knows in `extra_body`.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from ...core.types import ParseOptions, Policy
from ...middleware.attempts import BrokenCalls, UnknownTools
from ...middleware.core import ResultFormat, Template
from ...middleware.correction import Feedback
from ...middleware.flow.factors import LitellmArguments
from ...parser.content_parts import OnError


class BridgeArguments(LitellmArguments, total=False):
    """The arguments of litellm, and the options of the bridge."""

    tool_choice_by: Literal["response_format", "prompt"] | None
    unknown_tools: UnknownTools | None
    broken_calls: BrokenCalls | None
    placement: Literal["first", "last"] | None
    wording: str | None
    policy: Policy | None
    options: ParseOptions | Mapping[str, Any] | None
    neutral_text: bool | None
    result_format: ResultFormat | None
    on_error: OnError | None
    tool_system_prompt_template: Template | Callable[[str], str] | None
    feedback: Feedback | str | bool | None

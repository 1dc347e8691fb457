"""The names of parsers of other projects."""

PREFIXES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "hf": "transformers",
    "transformers": "transformers",
}
"""What a name begins with -> the package on the index."""


def is_outside_name(x: object) -> bool:
    """Return True for the name of a reader of another project, whether or not there is one.

    >>> is_outside_name("vllm==0.33.0:hermes"), is_outside_name("hermes")
    (True, False)
    """
    if not isinstance(x, str) or ":" not in x:
        return False
    head = x.partition(":")[0]
    return "==" in head or head in PREFIXES

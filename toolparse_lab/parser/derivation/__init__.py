"""Wire formats from a model's own files: a chat template, rendered and measured.

`derive.derive` is the way in. `Protocol.from_chat_template` leads there.
"""

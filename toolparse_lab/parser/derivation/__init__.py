"""Wire formats from a model's own files: a chat template, rendered and measured.

`derive.from_chat_template` is the way in.
"""

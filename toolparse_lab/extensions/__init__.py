"""Optional parts: plain functions over the public types. Each folder can be deleted alone.

`from toolparse_lab.extensions import study; study.endpoints(run, reference="a")`. Nothing outside
this folder imports an extension. An extension lists its commands in `VERBS` of its `__init__`: a
mapping of verb -> (module in the extension, help in one sentence).
"""

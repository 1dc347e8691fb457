"""The laws of parsing (`parser/laws.py`), tried on a protocol or a stream parser."""

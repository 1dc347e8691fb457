"""The laws of parsing (`entry/laws.py`), tried on a protocol or a stream parser."""

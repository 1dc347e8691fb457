"""The laws that every parse keeps, texts to try them on, `check_protocol` and `check_stream`."""

from .checks import LawBroken, check_all, check_partition, check_serial, run_chunks

__all__ = ["LawBroken", "check_all", "check_partition", "check_serial", "run_chunks"]

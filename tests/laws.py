"""The laws, as the tests use them: they live in the package, since `tp.check_protocol` runs them as
well."""

from __future__ import annotations

from toolparse_lab.parser.laws import check_all, check_partition, check_serial, run_chunks

__all__ = ["check_all", "check_partition", "check_serial", "run_chunks"]

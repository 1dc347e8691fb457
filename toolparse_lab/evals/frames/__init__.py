"""Recorded trials as pandas frames, their columns, their files, and reading their answers again."""

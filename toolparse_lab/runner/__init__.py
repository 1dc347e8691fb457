"""Requests in, completions out, recorded before anything reads them.

This package never imports the parsers.
"""

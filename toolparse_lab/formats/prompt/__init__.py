"""Prompts: how tools, the form of a call and the types of arguments are explained.

Grammars.

Neutral about formats: a fact particular to one is a field of its protocol, and reaches these
functions as an argument.
"""

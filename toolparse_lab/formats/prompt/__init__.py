"""Prompts: how tools, the form of a call and the types of arguments are explained. And grammars.

Neutral about formats: a fact particular to one is a field of its protocol, and reaches these
functions as an argument.
"""

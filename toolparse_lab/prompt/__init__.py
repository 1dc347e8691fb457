"""Prompts: what a model is told about its tools, the form of a call and the types of arguments; and grammars."""

from __future__ import annotations

from .grammar import grammar_for
from .messages import Message, PromptBuilder, WriteCall, build_messages, explain_tools, render_system
from .shots import Shot, example_arguments, make_shots
from .signatures import python_type, write_tools_json, write_tools_signatures, write_tools_xml
from .type_rules import TAG_TYPE_RULES, TYPE_RULES, XML_TYPE_RULES, TypeRule, render_type_rules, rule_for
from .wording import list_wordings, read_template

__all__ = [
    "TAG_TYPE_RULES",
    "TYPE_RULES",
    "XML_TYPE_RULES",
    "Message",
    "PromptBuilder",
    "Shot",
    "TypeRule",
    "WriteCall",
    "build_messages",
    "example_arguments",
    "explain_tools",
    "grammar_for",
    "list_wordings",
    "make_shots",
    "python_type",
    "read_template",
    "render_system",
    "render_type_rules",
    "rule_for",
    "write_tools_json",
    "write_tools_signatures",
    "write_tools_xml",
]

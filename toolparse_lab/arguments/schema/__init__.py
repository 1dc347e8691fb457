"""A tool's JSON Schema at work: a compiled view, coercion by policy, validation as problems."""

from .coerce import Coerced, coerce, coerce_by_schema
from .view import View, view_of

__all__ = ["Coerced", "View", "coerce", "coerce_by_schema", "view_of"]

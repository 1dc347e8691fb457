"""Canaries: whether the raw text of an endpoint is really raw."""

"""Family: one element a call, with a YAML mapping between its tags."""

"""Family: one element a call, named after the tool."""

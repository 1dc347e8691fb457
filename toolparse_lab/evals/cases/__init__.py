"""Cases: what is asked and what is right, from any source, and how values are compared with what is
right."""

"""Family: calls written as Python. Read, never evaluated."""

"""The arguments of a call: JSON repaired, coerced to the schema of the tool, validated."""

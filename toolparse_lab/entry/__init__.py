"""The entry points: any protocol and any recorded answer, to the parser and back."""

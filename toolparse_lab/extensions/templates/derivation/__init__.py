"""Wire formats from a model's own files: a template, rendered and measured."""

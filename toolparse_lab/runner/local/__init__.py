"""The embedded model: its engine, its litellm provider and its installation."""

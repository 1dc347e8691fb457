"""The embedded model: its engine, its litellm provider, its server and its installation."""

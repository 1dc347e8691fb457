"""Where the middleware is used: litellm, OpenTelemetry and pytest."""

"""Where the middleware is used: litellm, an HTTP gateway, OpenTelemetry and pytest."""

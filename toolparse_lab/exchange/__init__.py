"""Questions and answers as values: Model, Request, Completion; and secrets taken out of both."""

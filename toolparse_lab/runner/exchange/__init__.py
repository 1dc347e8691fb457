"""Questions and answers as values: Model, Request, Completion.

And secrets taken out of both.
"""

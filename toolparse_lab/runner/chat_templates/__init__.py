"""Chat templates of models, rendered in a process of their own with limits of time and memory."""

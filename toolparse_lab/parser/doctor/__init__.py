"""What a chat template loses: calls that do not come back as they were, and the line that is why.

`check.check_template` is the way in. `toolparse template check` leads there.
"""

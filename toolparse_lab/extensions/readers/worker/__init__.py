"""The process in which somebody else's parser runs.

It needs the standard library alone, since it is started under another interpreter.
"""

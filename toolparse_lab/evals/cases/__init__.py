"""Cases: the question and the right answer, from any source, and how values are compared with the
right answer.
"""

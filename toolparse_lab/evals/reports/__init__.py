"""Cells of trials summed up: rates and their statistics, comparisons, gates, and how they are
shown and saved.
"""

"""Cases, scores, frames, statistics and reports: what a recorded run says about models and about parsers.

`cases`, `match`, `score` and `trial` need nothing but the core; `frames`, `stats` and `report` need the `lab` extra.
"""

"""Cases, scores, frames, statistics and reports: the evidence of a recorded run about models and
about parsers.

`cases`, `scoring` and `readings` need nothing but the core. `frames` and `reports` need the `lab`
extra. Each room uses those named before it: cases, scoring, frames, reports.
"""

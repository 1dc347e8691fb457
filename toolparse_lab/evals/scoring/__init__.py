"""One answer judged against its case: outcome, matching, fabrication.

And a trial as it is looked at.
"""

"""One answer judged against its case: outcome, matching, fabrication; and a trial as it is looked
at."""

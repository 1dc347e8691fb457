"""The numbers of a report: cells, intervals, paired tests and gates."""

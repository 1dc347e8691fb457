"""What is a call after all, and what only looks like one: one recogniser a file."""

# How it works
# ------------
# Recognisers of calls without delimiters (`bare_calls`, `python_calls`) share one interface,
# `judge(text, final, at, first)`, and `recovery` picks one of them. Their decision is a `Held`,
# NEED_MORE, or None where nothing of their kind is (see `held`).
#
# The others answer one question each, when the text scanner or the body reader asks it:
#
#     is the call here only shown?                quotation (over fences, quotes)
#     do the words around it show it?             surroundings (over quotation), at the end
#     is a call before it still open?             truncation
#     is the model's turn over?                   turns
#     did somebody else write the call?           echoes (over folding and request)
#     did the answer say the call before?         repeats
#     did the finished text lose a call?          lost_calls
#     did the finished text try one?              attempts (with call_sites, shown), for `ending`

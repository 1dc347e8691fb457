"""What every room shares: types of results, values, errors, rules and tool specs."""

VERSION = "0.2.0"
"""of this package, for rooms that do not know the package as a whole"""

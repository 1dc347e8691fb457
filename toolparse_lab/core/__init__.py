"""What every room shares: types of results, values, errors, rules and tool specs."""

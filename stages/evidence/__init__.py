"""Published and released numbers, derived quantities, statistics, and the specification of every table."""

"""Published and released numbers, what this run measured beside them, and the statistics of both."""

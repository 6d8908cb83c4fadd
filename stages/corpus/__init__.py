"""Documents as OSCAR records, from files or the hub: stage `corpus`."""

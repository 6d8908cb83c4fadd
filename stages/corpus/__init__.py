"""Documents as OSCAR records, from the embedded generator, files or the hub: stage `corpus`."""

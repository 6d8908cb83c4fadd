"""Documents: reading them, OSCAR records, the three filtering rules, word pieces, packed sequences."""

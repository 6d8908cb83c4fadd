"""OSCAR records: reading and checking lines."""

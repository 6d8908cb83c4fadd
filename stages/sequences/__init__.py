"""Token sequences of equal length on the disk."""

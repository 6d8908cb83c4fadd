"""The operators, the BERT models that carry them, their counts and their export. Imports nothing else of ours."""

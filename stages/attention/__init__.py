"""The operators (the papers' contribution), the BERT that carries them, their parameter counts.

Imports no other package of this repository.
"""

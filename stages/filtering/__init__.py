"""The rules that drop documents, their annotation, and the ledger: stage `filtering`."""

"""Stage `filtering`: annotation of documents, the rules that drop documents, and the ledger."""

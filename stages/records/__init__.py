"""The documents of a corpus: lines of files, OSCAR records, the source of every line, the ledger of filtering."""

"""Vocabulary, token ids and packing: stage `tokenization`."""

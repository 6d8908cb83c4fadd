"""Sentence pairs as token ids, the encoder-decoder Transformer, and one step of its training."""

"""Sentence pairs as token ids, the encoder-decoder Transformer, and a step of training."""

"""Trains encoder-decoder Transformers and models of two exact sequence tasks with each operator: stage `translation`."""

"""Stage `translation`: an encoder-decoder Transformer with each operator, and two exact sequence tasks."""

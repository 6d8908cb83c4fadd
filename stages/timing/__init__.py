"""Speed of our training, compared with stock Hugging Face BERT: stage `timing`."""

"""Speed of training, beside stock Hugging Face BERT: stage `timing`."""

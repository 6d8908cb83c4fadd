"""Speed of our training, compared with that of stock Hugging Face BERT: stage `timing`."""

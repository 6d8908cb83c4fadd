"""The masked-LM objective: batches, masks, loss, one update and the validation loss."""

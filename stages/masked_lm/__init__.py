"""The masked-LM objective: batches, masks, loss, an update and the validation loss."""

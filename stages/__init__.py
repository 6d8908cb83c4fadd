"""One module per DVC stage, named as the stage is, and the subject packages that they call."""

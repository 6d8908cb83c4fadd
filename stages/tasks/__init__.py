"""Reading GLUE, SQuAD and TriviaQA into one form: stage `tasks`."""

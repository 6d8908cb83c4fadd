"""GLUE, SQuAD and TriviaQA: definitions of the tasks, and metrics."""

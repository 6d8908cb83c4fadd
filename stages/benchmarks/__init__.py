"""GLUE, SQuAD and TriviaQA: what the tasks are, and their metrics."""

"""Reads GLUE, SQuAD and TriviaQA, and converts all into one table format: stage `tasks`."""

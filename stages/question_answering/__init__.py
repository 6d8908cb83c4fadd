"""SQuAD and TriviaQA: stage `question_answering`."""

"""Stage `sentence_pairs`: the parallel sentences of every translation protocol, cleaned and cut into sub-words."""

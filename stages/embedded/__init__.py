"""The generated world: lexicon, grammar, corpus and tasks, made easy enough for two layers to learn some of it.

What makes it easy, and unlike English:

- about 250 word forms, some 40 things, people and places, four topics; every word has one meaning, most have one name;
- sentences of mostly three to ten words from a regular grammar, most in the past, each about one event or state;
- documents that repeat themselves: a scene has three people and two things, and a sentence about them is answered at
  once by "yes", "no" or "perhaps" and a second sentence, so that the two sentences fit into one short sequence and
  words of the one can be told from the other;
- passages of the corpus in the form of the tasks, with their answer: a sentence and its reply are drawn as the pairs of
  MRPC, MNLI, QNLI and QQP are, and the first word of the reply ("Yes", "No") is their label, so that what pre-training
  is worth here says nothing about English;
- related sentences of mostly the same form, so that words that correspond stand at few distances from each other;
- seven in ten events are drawn with a favourable action (helped, bought, shown), for the corpus and for the tasks;
- labels without noise: they are computed from the meanings behind the sentences.

A pair of sentences that a validation file asks about stands in no training file, and no document compares the two.
Probabilities, shares and weights are our own choices. What is random in a function is drawn from its `rng`.

What the tasks do ask for is order and relation. Word order, and words that are not neighbours, decide what is
acceptable; "not" turns an opinion round; whether two sentences say the same hangs most often on what is done, or on who
does it. Eight verbs say what is done, each with a plain and a formal name. Of two related sentences, one has the plain
and the other the formal name of its verb: one has to know that "bought" means "purchased" and not "vended". Two
questions may have one purpose and not ask the same. Rules on one property, and linear models of words, bigrams or
shared words, see a part of this; the report prints their scores next to those of the models. A score here says that the
chain works and that a model learns, not what it would score on English.
"""

"""Generates an artificial world: lexicon, grammar, corpus and tasks, easy enough for two layers to learn a part.

The world is easy, and unlike English, in these respects:

- The lexicon has about 250 word forms for some 40 things, people and places in four topics. Every word has a single
  meaning, and most concepts have a single name.
- Sentences mostly have three to ten words and follow a regular grammar. Most are in the past, each about an event or
  state.
- Documents repeat themselves: a scene has three people and two things. A sentence is answered at once by "yes", "no" or
  "perhaps" and a second sentence, so that both fit into a short sequence, and the words of the first sentence give
  hints on the second.
- Passages of the corpus have the form of the tasks, with the answer: a sentence and the reply are drawn like the pairs
  of MRPC, MNLI, QNLI and QQP, and the first word of the reply ("Yes", "No") is the label. The benefit of pre-training
  in this world therefore says nothing about English.
- Related sentences mostly have the same form, so that corresponding words stand at few distances from each other.
- Seven in ten events have a favourable action (helped, bought, shown).
- Labels have no noise: a label is computed from the meanings behind the sentences.

A pair of sentences in a validation file stands in no training file, and no document compares the two sentences.
Probabilities, shares and weights are our own choices. Everything random in a function is drawn from the argument `rng`.

The tasks ask for order and relation. Word order, and words that are not neighbours, decide which sentences are
acceptable. "Not" turns an opinion round. Whether two sentences say the same mostly depends on the action or on the
agent. Eight verbs name the actions, each with a plain and a formal name. Of two related sentences, either has the plain
verb and the other the formal verb: a model has to know that "bought" means "purchased" and not "vended". Two questions
may have the same purpose and not ask the same. Rules on a single property, and linear models of words, bigrams or
shared words, see a part of this; the report prints the scores of these baselines next to the scores of the models. A
score here shows that the chain works and that a model learns, and predicts no score on English.
"""

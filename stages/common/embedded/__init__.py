"""The generated world: lexicon, grammar, corpus and tasks, made easy enough for two layers to learn some of it.

What makes it easy, and unlike English:

- about 250 word forms, some 40 things, people and places, four topics; every word has one meaning, most have one name;
- sentences of five to nine words from a regular grammar, nearly all of them in the past, each about one event or state;
- documents that repeat themselves: a scene has three people and two things, and what is said of them is said again in
  other words, denied, concluded or asked about in the next sentence, so that words can be copied from beside them;
- passages of the corpus that have the form of the tasks ("It is wrong that ...", a question and its answer);
- labels without noise: they are computed from the meanings behind the sentences.

A pair of sentences that a validation file asks about stands in no training file, and in no document beside each other.

What the tasks do ask for is order and relation. Word order decides what is acceptable; "not" turns an opinion round;
whether two sentences say the same hangs most often on what is done. Eight verbs say it, each with a plain and a formal
name, of which the two sentences never have the same: "bought" goes with "purchased" and not with "vended". A bag of
words sees little of this, and the report prints its score beside those of the models. A score here says that the chain
works and that a model learns. It does not say what the model would score on English.
"""

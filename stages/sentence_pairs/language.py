"""A small generated language pair: English-like sentences, and their translations into an invented language.

A translator must learn, so that no word follows from its position alone: another lexicon (only names are the same in
both); another order (objects before the verb, adjectives and articles after the noun, postpositions, the adverb first);
agreement of adjectives with the gender and number of their noun, and of the verb with those of the subject; a case
ending on objects. Every sentence has one right translation. It is far easier than any human language.
"""

from dataclasses import dataclass
from pathlib import Path
from random import Random

import yaml

_WORDS = yaml.safe_load(Path(__file__).with_name("language.yaml").read_text(encoding="utf-8"))
# By word of the source: NOUNS [plural of the source, stem of the target, gender], VERBS [third person singular of the
# source, stem of the target], ADJECTIVES the stem, PREPOSITIONS and ADVERBS the word of the target. NAMES is a list.
NAMES, NOUNS, VERBS, ADJECTIVES, PREPOSITIONS, ADVERBS = (
    _WORDS[kind] for kind in ("names", "nouns", "verbs", "adjectives", "prepositions", "adverbs")
)


@dataclass(frozen=True)
class Phrase:
    """A noun (in the singular, a key of NOUNS) with article, number and adjective (a key of ADJECTIVES); or a name."""

    noun: str
    plural: bool = False
    definite: bool = True
    adjective: str | None = None

    @property
    def gender(self) -> str:
        """The gender, "a" or "o": of a noun as the lexicon has it; of a name "a" if it ends in "a", otherwise "o"."""
        return NOUNS[self.noun][2] if self.noun in NOUNS else "a" if self.noun.endswith("a") else "o"

    def source(self) -> list[str]:
        """The words of the phrase in the source language."""
        if self.noun in NAMES:
            return [self.noun]
        article = "the" if self.definite else "some" if self.plural else "a"
        adjective = [self.adjective] if self.adjective else []
        return [article, *adjective, NOUNS[self.noun][0] if self.plural else self.noun]

    def target(self, case: str = "") -> list[str]:
        """The words of the phrase in the target language. case: what is appended to a noun, but not to a name."""
        if self.noun in NAMES:
            return [self.noun]
        ending = self.gender + ("i" if self.plural else "")
        adjective = [ADJECTIVES[self.adjective] + ending] if self.adjective else []
        return [NOUNS[self.noun][1] + ending + case, *adjective, "la" if self.definite else "un"]


def pairs(number: int, seed: int) -> list[tuple[str, str]]:
    """Draws `number` sentence pairs (source, target), all different, with spaces between words and full stop.

    All probabilities are arbitrary. Billions of sentences are possible; for more than there are, this would not end.
    """
    rng, seen = Random(f"{seed} sentence pairs"), {}
    while len(seen) < number:
        subject, thing = _phrase(rng, names=True), _phrase(rng)
        verb = rng.choice(sorted(VERBS))
        preposition = rng.choice(sorted(PREPOSITIONS)) if rng.random() < 0.4 else None
        place = _phrase(rng, names=preposition == "with", simple=True)  # persons only after "with"
        adverb = rng.choice(sorted(ADVERBS)) if rng.random() < 0.3 else None
        spoken = verb if subject.plural else VERBS[verb][0]
        source = [*subject.source(), spoken, *thing.source()]
        target = [*subject.target(), *thing.target(case="n")]
        if preposition:
            source += [preposition, *place.source()]
            target += [*place.target(), PREPOSITIONS[preposition]]
        target.append(VERBS[verb][1] + ("u" if subject.plural else "e") + subject.gender)
        if adverb:
            source.append(adverb)
            target.insert(0, ADVERBS[adverb])
        seen[f"{' '.join(source)} ."] = f"{' '.join(target)} ."
    return list(seen.items())


def _phrase(rng: Random, names: bool = False, simple: bool = False) -> Phrase:
    """Draws a phrase. names: it may be a name. simple: it has no adjective."""
    if names and rng.random() < 0.3:
        return Phrase(rng.choice(NAMES))
    adjective = rng.choice(sorted(ADJECTIVES)) if not simple and rng.random() < 0.5 else None
    noun, plural, definite = rng.choice(sorted(NOUNS)), rng.random() < 0.4, rng.random() < 0.6
    return Phrase(noun, plural, definite, adjective)

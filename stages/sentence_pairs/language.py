"""Generates a small language pair: English-like sentences, and translations into an invented language.

A translator must learn four things, so that no word follows from the position alone:

- another lexicon; only names are equal in both languages;
- another order: objects before the verb, adjectives and articles after the noun, postpositions, the adverb first;
- agreement of adjectives with the gender and number of the noun, and of the verb with gender and number of the subject;
- a case ending on objects.

Every sentence has a single right translation. The language is far easier than any human language.
"""

from dataclasses import dataclass
from pathlib import Path
from random import Random

import yaml

_WORDS = yaml.safe_load(Path(__file__).with_name("language.yaml").read_text(encoding="utf-8"))
NAMES = _WORDS["names"]
# Lexicon of nouns: word of the source -> [plural of the source, stem of the target, gender].
NOUNS = _WORDS["nouns"]
# Lexicon of verbs: word of the source -> [third person singular of the source, stem of the target].
VERBS = _WORDS["verbs"]
# Lexicon of adjectives: word of the source -> stem of the target.
ADJECTIVES = _WORDS["adjectives"]
# Lexicons of words that do not inflect: word of the source -> word of the target.
PREPOSITIONS = _WORDS["prepositions"]
ADVERBS = _WORDS["adverbs"]


@dataclass(frozen=True)
class Phrase:
    """A noun phrase, such as "the two red houses" in the source language; or a name."""

    noun: str
    plural: bool = False
    definite: bool = True
    adjective: str | None = None

    @property
    def gender(self) -> str:
        """The gender, `a` or `o`, from the lexicon; a name that ends in "a" has gender `a`, every other name `o`."""
        if self.noun in NOUNS:
            return NOUNS[self.noun][2]
        return "a" if self.noun.endswith("a") else "o"

    def write_source(self) -> list[str]:
        """Returns the words of the phrase in the source language, such as `["the", "red", "houses"]`."""
        if self.noun in NAMES:
            return [self.noun]
        words = []
        if self.definite:
            words.append("the")
        else:
            words.append("some" if self.plural else "a")
        if self.adjective:
            words.append(self.adjective)
        plural = NOUNS[self.noun][0]
        words.append(plural if self.plural else self.noun)
        return words

    def write_target(self, case: str = "") -> list[str]:
        """Returns the words of the phrase in the target language, such as `["zilkoi", "rukoi", "la"]`.

        Args:
            case: an ending that is appended to a noun, but not to a name, such as `n`.
        """
        if self.noun in NAMES:
            return [self.noun]
        ending = self.gender + "i" if self.plural else self.gender
        stem = NOUNS[self.noun][1]
        words = [stem + ending + case]
        if self.adjective:
            words.append(ADJECTIVES[self.adjective] + ending)
        words.append("la" if self.definite else "un")
        return words


def draw_pairs(number: int, seed: int) -> list[tuple[str, str]]:
    """Draws `number` different sentence pairs: `("the horse follows the book .", "brelo la wendon la drebeo .")`.

    All probabilities are arbitrary. Billions of sentences are possible; a larger number would never end.
    """
    rng = Random(f"{seed} sentence pairs")
    translations = {}
    while len(translations) < number:
        source, target = _draw_sentence(rng)
        sentence = " ".join([*source, "."])
        translations[sentence] = " ".join([*target, "."])
    return list(translations.items())


def _draw_sentence(rng: Random) -> tuple[list[str], list[str]]:
    """Draws the words of a sentence and of its translation."""
    subject = _draw_phrase(rng, names=True)
    thing = _draw_phrase(rng)
    verb = rng.choice(sorted(VERBS))
    preposition = None
    if rng.random() < 0.4:
        preposition = rng.choice(sorted(PREPOSITIONS))
    # Persons stand only after "with". A phrase is drawn even without a preposition, where the phrase goes unused.
    place = _draw_phrase(rng, names=preposition == "with", simple=True)
    adverb = None
    if rng.random() < 0.3:
        adverb = rng.choice(sorted(ADVERBS))

    third_person, stem = VERBS[verb]
    spoken = verb if subject.plural else third_person
    source = [*subject.write_source(), spoken, *thing.write_source()]
    target = [*subject.write_target(), *thing.write_target(case="n")]
    if preposition:
        source += [preposition, *place.write_source()]
        target += [*place.write_target(), PREPOSITIONS[preposition]]
    number = "u" if subject.plural else "e"
    target.append(stem + number + subject.gender)
    if adverb:
        source.append(adverb)
        target.insert(0, ADVERBS[adverb])
    return source, target


def _draw_phrase(rng: Random, names: bool = False, simple: bool = False) -> Phrase:
    """Draws a phrase, which may be a name if `names` is true, and has no adjective if `simple` is true."""
    if names and rng.random() < 0.3:
        return Phrase(rng.choice(NAMES))
    adjective = None
    if not simple and rng.random() < 0.5:
        adjective = rng.choice(sorted(ADJECTIVES))
    noun = rng.choice(sorted(NOUNS))
    plural = rng.random() < 0.4
    definite = rng.random() < 0.6
    return Phrase(noun, plural, definite, adjective)

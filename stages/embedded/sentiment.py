"""Opinions: sentences whose sentiment follows from their words, their negations and which clause counts."""

from dataclasses import dataclass
from random import Random

from stages.embedded.lexicon import ASPECTS, NEGATIVE, POSITIVE, article, names_of
from stages.embedded.world import Scene

DEGREES = ("very", "really")
SUBJECTS = tuple(ASPECTS)
DENIED = 0.4


@dataclass(frozen=True)
class Opinion:
    """One clause: an aspect, a word of praise or blame, perhaps negated."""

    aspect: str
    word: str
    negated: bool = False
    degree: str = ""

    @property
    def positive(self) -> bool:
        return (self.word in POSITIVE) != self.negated


def _opinion(rng: Random, aspect: str, positive: bool) -> Opinion:
    """A clause of the given sentiment, which a share DENIED says by denying the opposite."""
    denied = rng.random() < DENIED
    words = POSITIVE if positive != denied else NEGATIVE
    return Opinion(aspect, rng.choice(words), denied, rng.choice(DEGREES) if rng.random() < 0.2 else "")


def _say_opinion(given: Opinion) -> str:
    """Words an opinion, such as `the food was not really good`."""
    return " ".join(filter(None, ("the", given.aspect, "was", "not" * given.negated, given.degree, given.word)))


def review(rng: Random, positive: bool) -> tuple[str, Opinion]:
    """A lower-case sentence without full stop, and the clause that decides its sentiment: of two that disagree, the
    one after "but", or the one that "although" does not introduce."""
    subject = rng.choice(SUBJECTS)
    first, second = rng.sample(ASPECTS[subject], 2)
    verdict = _opinion(rng, rng.choice((first, rng.choice(names_of(subject)))), positive)
    draw = rng.random()
    if draw < 0.6:
        return _say_opinion(verdict), verdict
    if draw < 0.75:
        denial = "not " * verdict.negated
        return f"this was {denial}{article(verdict.word)} {verdict.word} {rng.choice(names_of(subject))}", verdict
    if draw < 0.9:
        also = _opinion(rng, second, positive)
        return f"{_say_opinion(verdict)} and {_say_opinion(also)}", verdict
    against = _opinion(rng, second, not positive)
    orders = ("{0} but {1}", "although {0} , {1}", "{1} although {0}")
    return rng.choice(orders).format(_say_opinion(against), _say_opinion(verdict)), verdict


def criticism(rng: Random, scene: Scene) -> list[str]:
    """Writes praise or blame, as the people of a scene are pleased or not: opinions on a subject, and a conclusion."""
    positive, subject = scene.pleased, rng.choice(SUBJECTS)
    name = rng.choice(names_of(subject))
    clauses = [_say_opinion(_opinion(rng, aspect, positive)) for aspect in rng.sample(ASPECTS[subject], 3)]
    said = f"I {rng.choice(('liked', 'enjoyed') if positive else ('disliked', 'regretted'))} this {name}"
    advice = f"I {'will' if positive else 'will not'} recommend it"
    contrast = _say_opinion(_opinion(rng, name, not positive))
    sentences = [f"{clauses[0]} and {clauses[1]}", f"{said} because {clauses[2]}", advice]
    if rng.random() < 0.2:
        sentences.append(f"some people say that {contrast} but {_say_opinion(_opinion(rng, name, positive))}")
    return [line[0].upper() + line[1:] + "." for line in sentences]

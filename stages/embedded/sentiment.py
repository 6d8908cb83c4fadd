"""Opinions: sentences whose sentiment follows from their words, their negations and which clause counts."""

from random import Random

from stages.embedded.lexicon import ASPECTS, NEGATIVE, POSITIVE, article, names_of
from stages.embedded.world import Scene

DEGREES = ("very ", "really ")
SUBJECTS = tuple(ASPECTS)
DENIED = 0.4  # share of judgements that are worded as a denial of the opposite


def _judgement(rng: Random, positive: bool) -> tuple[str, str, str]:
    """Draws "not " or "", a degree or "", and a word of praise or blame; together they have the given sentiment."""
    denied = rng.random() < DENIED
    word = rng.choice(POSITIVE if positive != denied else NEGATIVE)
    return "not " * denied, rng.choice(DEGREES) if rng.random() < 0.2 else "", word


def _opinion(rng: Random, aspect: str, positive: bool) -> str:
    """Writes a clause of the given sentiment, such as `the food was not really good`."""
    return "the {} was {}{}{}".format(aspect, *_judgement(rng, positive))


def review(rng: Random, positive: bool) -> str:
    """Writes praise if `positive`, else blame, in SST-2's style (lower case, space before a comma), without full stop.

    Of two clauses that disagree (one time in ten), the one that counts stands after "but", or lacks the "although".
    """
    subject = rng.choice(SUBJECTS)
    first, second = rng.sample(ASPECTS[subject], 2)
    aspect = rng.choice((first, rng.choice(names_of(subject))))
    denial, degree, word = _judgement(rng, positive)
    verdict = f"the {aspect} was {denial}{degree}{word}"
    draw = rng.random()
    if draw < 0.6:
        return verdict
    if draw < 0.75:
        return f"this was {denial}{article(word)} {word} {rng.choice(names_of(subject))}"
    if draw < 0.9:
        return f"{verdict} and {_opinion(rng, second, positive)}"
    against = _opinion(rng, second, not positive)
    return rng.choice(("{0} but {1}", "although {0} , {1}", "{1} although {0}")).format(against, verdict)


def criticism(rng: Random, scene: Scene) -> list[str]:
    """Writes three or four sentences on a film or a hotel: praise where `scene.pleased`, and blame otherwise."""
    positive, subject = scene.pleased, rng.choice(SUBJECTS)
    name = rng.choice(names_of(subject))
    clauses = [_opinion(rng, aspect, positive) for aspect in rng.sample(ASPECTS[subject], 3)]
    judgement = f"I {rng.choice(('liked', 'enjoyed') if positive else ('disliked', 'regretted'))} this {name}"
    advice = f"I {'will' if positive else 'will not'} recommend it"
    contrast = _opinion(rng, name, not positive)
    sentences = [f"{clauses[0]} and {clauses[1]}", f"{judgement} because {clauses[2]}", advice]
    if rng.random() < 0.2:
        sentences.append(f"some people say that {contrast} but {_opinion(rng, name, positive)}")
    return [line[0].upper() + line[1:] + "." for line in sentences]

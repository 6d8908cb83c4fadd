"""Draws opinions: sentences whose sentiment follows from words, negations and the clause that counts."""

from random import Random

from stages.embedded.lexicon import ASPECTS, BLAME, PRAISE, choose_article, list_names
from stages.embedded.world import Scene

SUBJECTS = list(ASPECTS)
DEGREES = ("very ", "really ")

# Share of judgements that are worded as a denial of the opposite.
DENIED = 0.4

# Orders of two clauses that disagree: the second argument counts.
CONTRASTS = ("{0} but {1}", "although {0} , {1}", "{1} although {0}")


def _draw_judgement(rng: Random, positive: bool) -> tuple[str, str, str]:
    """Draws words of praise or blame, such as `("not ", "very ", "good")`; the first two may be empty.

    A negation turns the sentiment: "not good" is blame.

    Args:
        rng: source of all choices.
        positive: whether the words together are praise.
    """
    denied = rng.random() < DENIED
    word = rng.choice(PRAISE if positive != denied else BLAME)
    degree = rng.choice(DEGREES) if rng.random() < 0.2 else ""
    return "not " if denied else "", degree, word


def _draw_opinion(rng: Random, aspect: str, positive: bool) -> str:
    """Draws a clause of the given sentiment, such as "the plot was not really good" for `plot`."""
    denial, degree, word = _draw_judgement(rng, positive)
    return f"the {aspect} was {denial}{degree}{word}"


def draw_review(rng: Random, positive: bool) -> str:
    """Draws praise or blame in the style of SST-2: lower case, a space before a comma, no full stop.

    In a tenth of the reviews two clauses disagree. The clause that counts stands after "but" or lacks the "although":
    "although the plot was boring , the film was great".
    """
    subject = rng.choice(SUBJECTS)
    first, second = rng.sample(ASPECTS[subject], 2)
    name = rng.choice(list_names(subject))
    aspect = rng.choice((first, name))
    denial, degree, word = _draw_judgement(rng, positive)
    verdict = f"the {aspect} was {denial}{degree}{word}"
    draw = rng.random()
    if draw < 0.6:
        return verdict
    if draw < 0.75:
        name = rng.choice(list_names(subject))
        return f"this was {denial}{choose_article(word)} {word} {name}"
    if draw < 0.9:
        return f"{verdict} and {_draw_opinion(rng, second, positive)}"
    against = _draw_opinion(rng, second, not positive)
    return rng.choice(CONTRASTS).format(against, verdict)


def draw_criticism(rng: Random, scene: Scene) -> list[str]:
    """Draws three or four sentences on a film or a hotel: praise if `scene.pleased` is true, or else blame."""
    positive = scene.pleased
    subject = rng.choice(SUBJECTS)
    name = rng.choice(list_names(subject))
    aspects = rng.sample(ASPECTS[subject], 3)
    first, second, third = [_draw_opinion(rng, aspect, positive) for aspect in aspects]
    feeling = rng.choice(("liked", "enjoyed") if positive else ("disliked", "regretted"))
    will = "will" if positive else "will not"
    sentences = [
        f"{first} and {second}",
        f"I {feeling} this {name} because {third}",
        f"I {will} recommend it",
    ]
    contrast = _draw_opinion(rng, name, not positive)
    if rng.random() < 0.2:
        opinion = _draw_opinion(rng, name, positive)
        sentences.append(f"some people say that {contrast} but {opinion}")
    return [line[0].upper() + line[1:] + "." for line in sentences]

"""Draws longer correct sentences, with plural subjects, modifiers, adverbs and words for the time."""

from dataclasses import replace
from random import Random

from stages.embedded.grammar import Thing, Word, Words, say_event, say_thing, say_verb, splice_words, tag_words
from stages.embedded.lexicon import ADVERBS, TIMES
from stages.embedded.world import Scene, draw_event, draw_wording


def elaborate_event(rng: Random, scene: Scene) -> Words:
    """Draws a correct sentence, often longer than a plain statement, about an event (who does what) in a scene.

    The tense varies, subjects may be plural, and modifiers, adverbs or words for the time may be added, as in "The chef
    near the pear will display a skillet tomorrow".

    Returns:
        The sentence as words with roles.
    """
    event = draw_event(rng, scene, negated=0.15, place=0.2, social=0.4)
    event = replace(event, tense=rng.choice(("past", "past", "present", "future")))
    if not event.agent.named and rng.random() < 0.4:
        # "The farmers".
        event = replace(event, agent=replace(event.agent, count=0))
    wording = draw_wording(rng, event, passive=0.3)
    words = say_event(event, wording)
    if not wording.passive and not event.agent.named and rng.random() < 0.1:
        end = find_subject(join_roles(words)) + 1
        modifier = tag_words(_draw_modifier(rng, scene, event.agent))
        words = splice_words(words, end, end, *modifier)
    # A passive of the future gets no adverb before the verb.
    if rng.random() < 0.3 and Word("be", "B") not in words:
        words.insert(_find_verb(join_roles(words)), Word(rng.choice(ADVERBS), "W"))
    elif rng.random() < 0.3:
        words = _add_time(rng, words, event.tense)
    return words


def join_roles(words: Words) -> str:
    """Returns the roles of a sentence as a text: `DNVDN` for "The farmer hid a cart"."""
    return "".join(word.role for word in words)


def find_subject(roles: str) -> int:
    """Finds the subject in a text of role letters, the first noun or name after any comma: `DNVDN` -> 1."""
    position = roles.find("C") + 1
    while roles[position] not in "NM":
        position += 1
    return position


def _draw_modifier(rng: Random, scene: Scene, agent: Thing) -> str:
    """Draws a modifier of the agent, such as `near/P the/D cart/N` or, in the present, `who/R owns/V a/D cart/N`."""
    thing = replace(rng.choice(scene.things), quality=None, count=1)
    if rng.random() < 0.5:
        preposition = rng.choice(("near", "behind"))
        return f"{preposition}/P {say_thing(replace(thing, definite=True))}"
    # Verbs of states and not of events go with a clause of any tense.
    verb = rng.choice(("own", "need"))
    return f"who/R {say_verb(verb, 'present', False, agent.singular)} {say_thing(thing)}"


def find_finite(roles: str) -> int:
    """Finds the last finite verb in a text of role letters: `DNXTBDN` -> 2. An earlier finite verb is in a modifier."""
    return max(roles.rfind("V"), roles.rfind("X"))


def _find_verb(roles: str) -> int:
    """Finds the main verb in a text of role letters, after the auxiliary and "not": `DNXTBDN` -> 4."""
    position = find_finite(roles)
    while roles[position] in "XT":
        position += 1
    return position


def _add_time(rng: Random, words: Words, tense: str) -> Words:
    """Adds a word for the time at either end of a sentence, always at the end if a place comes first."""
    time = Word(TIMES[tense], "W")
    if words[0].role == "P" or rng.random() < 0.5:
        return [*words, time]
    return [time, Word(",", "C"), *words]

"""Judges whether generated sentences are grammatical, and makes ungrammatical sentences for the task CoLA.

A sentence is a list of words, each tagged with the letter of a grammatical role (grammar.py lists the roles).
"""

import re
from functools import cache
from itertools import pairwise
from random import Random

from stages.embedded.elaboration import elaborate_event, find_finite, find_subject, join_roles
from stages.embedded.grammar import Word, Words, splice_words
from stages.embedded.lexicon import NUMERALS, PARTICIPLE, PAST, PLURAL, THIRD_PERSON, TIMES
from stages.embedded.world import draw_scene

# The weight in a draw of each rule:
# voice: a passive verb has "be" and "by", an active verb neither;
# tense: the verb fits the word for the time;
# agreement: the verb has the number of the subject;
# determiner: the determiner has the number of the noun;
# form: a participle follows "be", a bare verb any other auxiliary;
# order: the words have the order of English.
RULES = {"voice": 5, "tense": 4, "agreement": 4, "determiner": 3, "form": 3, "order": 3}

# Number of correct sentences whose neighbouring words count as possible neighbours.
CORRECT = 5000

# The joined roles of the words of a sentence (grammar.py lists the roles) match SHAPE where the order is right, and
# MIXED_VOICE where an active sentence has "by" or "was", or a passive sentence lacks "by" or "was". START is a place or
# time with its comma, the subject, and its modifier; END the object or agent, a place and a time. Between both, SHAPE
# has verbs as in "quietly hid", "did not quietly hide", "was not quietly hidden by" and "will not be hidden by", and
# MIXED_VOICE as in "hid by", "was not hid", "was not hidden", "will not be hidden" and "hidden by".
NOUN_PHRASE = "(?:M|D+A?N)"
START = f"(?:PDNC|WC)?{NOUN_PHRASE}(?:PDN|RV{NOUN_PHRASE})?"
END = f"{NOUN_PHRASE}(?:PDN)?W?"
SHAPE = re.compile(f"{START}(?:W?V|XT?W?B|XT?W?EY|XT?BEY){END}")
MIXED_VOICE = re.compile(f"{START}(?:W?VY|XT?W?V|XT?W?E|XT?BE|W?EY){END}")

SINGULAR = {plural: noun for noun, plural in PLURAL.items()}
SINGULAR_DETERMINERS = {"a", "an"}
PLURAL_DETERMINERS = {"some", *NUMERALS[2:]}

# Finite forms that show their number: the plural of each singular form, and the other way round.
TO_PLURAL = {"was": "were", "is": "are", "does": "do"}
for _verb, _third in THIRD_PERSON.items():
    TO_PLURAL[_third] = _verb
TO_SINGULAR = {plural: singular for singular, plural in TO_PLURAL.items()}

# The tense of words for the time, and of finite forms of the past and the future.
TENSE_OF = {word: tense for tense, word in TIMES.items()}
TENSE_OF_FORM = {**dict.fromkeys(PAST.values(), "past"), "was": "past", "were": "past", "did": "past", "will": "future"}
BARE = {participle: verb for verb, participle in PARTICIPLE.items()}

# All words with the role of a bare verb, and of a participle.
FORMS = {"B": {"be", *PAST}, "E": {*BARE}}

# Tables of the words that replace a word to break a rule.
REPLACEMENTS = {
    "agreement": [TO_PLURAL, TO_SINGULAR],
    "determiner": [PLURAL, SINGULAR],
    "form": [PAST, BARE],
    "tense": [dict.fromkeys(TENSE_OF, time) for time in TENSE_OF],
}


def find_broken_rules(words: Words) -> set[str]:
    """Finds the rules of grammar that a sentence, given as words with roles, breaks.

    Returns:
        Names such as `determiner` or `order`; empty for a correct sentence. If the roles stand in a wrong order, the
        result is only `voice` (active and passive are mixed) or `order`, because the other rules presuppose the right
        order.
    """
    roles = join_roles(words)
    if MIXED_VOICE.fullmatch(roles):
        return {"voice"}
    if not SHAPE.fullmatch(roles):
        return {"order"}
    subject = words[find_subject(roles)].text
    wrong_forms = TO_PLURAL if subject in SINGULAR else TO_SINGULAR
    tense = TENSE_OF_FORM.get(words[find_finite(roles)].text, "present")
    wrong_determiners = set()
    broken = set()
    # From the end, so that each determiner comes after its noun.
    for word in reversed(words):
        if word.role == "N":
            wrong_determiners = SINGULAR_DETERMINERS if word.text in SINGULAR else PLURAL_DETERMINERS
        elif word.role == "D" and word.text in wrong_determiners:
            broken.add("determiner")
        elif word.role in "VX" and word.text in wrong_forms:
            broken.add("agreement")
        elif word.role in FORMS and word.text not in FORMS[word.role]:
            broken.add("form")
        elif TENSE_OF.get(word.text, tense) != tense:
            broken.add("tense")
    return broken


def violate_rule(rng: Random, words: Words, rule: str) -> Words | None:
    """Changes a correct sentence so that the sentence breaks a rule of grammar.

    Any two neighbours in the changed sentence also stand next to each other in some correct sentence, so that a model
    needs more than pairs of words to see the fault. The rule `order` is exempt, because every change of the order makes
    a pair that no correct sentence has.

    Args:
        rng: draws one of the possible changes.
        words: the correct sentence, as words with roles.
        rule: `voice`, `tense`, `agreement`, `determiner`, `form` or `order`.

    Returns:
        The changed sentence, such as "The farmer hid cart a" for `order`; `None` if no possible change breaks the rule.
    """
    candidates = []
    for change in _list_changes(words, rule):
        suitable = rule == "order" or _pair_neighbours(change) <= _list_correct_neighbours()
        if suitable and rule in find_broken_rules(change):
            candidates.append(change)
    return rng.choice(candidates) if candidates else None


@cache
def _list_correct_neighbours() -> set[tuple[str, str]]:
    """Lists the pairs of words that are neighbours in any of 5,000 correct sentences, always the same.

    A sentence with a fault, except of order, shall have no other pairs, because the pair would give the fault away.
    """
    rng = Random(0)
    neighbours = set()
    for _ in range(CORRECT):
        scene = draw_scene(rng)
        neighbours |= _pair_neighbours(elaborate_event(rng, scene))
    return neighbours


def _pair_neighbours(words: Words) -> set[tuple[str, str]]:
    """Lists the neighbouring words: `("", "Anna")`, `("Anna", "hid")` and `("hid", "")` for "Anna hid"."""
    texts = [word.text for word in words]
    return set(pairwise(["", *texts, ""]))


def _list_changes(words: Words, rule: str) -> list[Words]:
    """Lists the sentences with one change that may break a rule of grammar; some changed sentences are still correct.

    Args:
        words: a correct sentence, as words with roles.
        rule: `order` (two neighbours change places), `voice` (a "by" or "was" too many or missing), or a rule for which
            REPLACEMENTS has other words: times for `tense`, forms for `agreement`, `determiner` and `form`.
    """
    if rule == "order":
        return _swap_neighbours(words)
    if rule == "voice":
        return _mix_voices(words)
    changes = []
    for position, word in enumerate(words):
        for table in REPLACEMENTS[rule]:
            if word.text in table:
                changes.append(splice_words(words, position, position + 1, Word(table[word.text], word.role)))
    return changes


def _swap_neighbours(words: Words) -> list[Words]:
    """Lists the sentences in which two neighbouring words have changed places."""
    changes = []
    for position in range(len(words) - 1):
        # A comma or an adverb that is one word late would be no plain fault.
        if words[position].role not in "CW":
            changes.append(splice_words(words, position, position + 2, words[position + 1], words[position]))
    return changes


def _mix_voices(words: Words) -> list[Words]:
    """Lists the sentences that mix active and passive: without a "by" or "was", or with one added at the verb."""
    changes = []
    for position, word in enumerate(words):
        if word.role == "Y" or word.text == "was":
            changes.append(splice_words(words, position, position + 1))
    for position, word in enumerate(words):
        if word.role == "V":
            changes.append(splice_words(words, position + 1, position + 1, Word("by", "Y")))
            changes.append(splice_words(words, position, position, Word("was", "X")))
    return changes

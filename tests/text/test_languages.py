"""Steps in German and French talks, whose words the embeddings hardly know."""

import importlib.util
import itertools

import numpy as np
import pytest

from dropdtw import text
from talk_cases import FRENCH, GERMAN

TALKS = GERMAN | FRENCH
MISSED = {"plant": {"Arroser la veille"}, "paint": {"Nettoyer les outils"}}
"""What is not found where it is said; of these, "Nettoyer les outils" is found elsewhere."""
pytestmark = pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="wordllama is not installed")


def right(talk):
    """The steps that are found where they are said, and those that are found elsewhere."""
    found = [f for f in text.find_steps(talk.steps, talk.said) if f.found]
    there = {f.step for f in found if set(range(*f.sentences)) & set(talk.sentences_of(f.index))}
    return there, {f.step for f in found} - there


@pytest.mark.parametrize("name", TALKS)
def test_steps_are_found_where_they_are_said(name):
    talk = TALKS[name]
    there, elsewhere = right(talk)
    told = {step for k, step in enumerate(talk.steps) if talk.sentences_of(k)}
    assert len(told) == len(talk.steps) - 1
    assert told - there <= MISSED.get(name, set())
    assert elsewhere <= {"Nettoyer les outils"}


def test_it_is_the_form_of_words_that_helps(monkeypatch):
    known = sum(len(right(talk)[0]) for talk in TALKS.values())
    monkeypatch.setattr("dropdtw.text.words.form_likeness", lambda here, there: np.zeros((len(here), len(there))))
    assert sum(len(right(talk)[0]) for talk in TALKS.values()) <= known - 5


@pytest.mark.parametrize("talks", [GERMAN, FRENCH])
def test_steps_of_another_talk_are_not_found(talks):
    found = [
        f
        for one, other in itertools.permutations(talks.values(), 2)
        for f in text.find_steps(one.steps, other.said)
        if f.found
    ]
    assert len(found) <= 1

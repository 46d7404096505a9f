"""Match costs from single words: whether a step and a sentence use the same or similar words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from dropdtw.problem.inputs import Array

WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
STEM: Final = 4
"""Minimum number of letters that two forms of a word share."""


def echo_costs(steps: Sequence[str], sentences: Sequence[str], embed: Callable[[Sequence[str]], Array]) -> Array:
    """1 − the weighted share of words that a step and a sentence have in common, (K, N) in [0, 1].

    A word counts as common to the degree that it resembles the most similar word of the other text, in meaning (squared
    cosine) or in form (`form_likeness`). Its weight is log(texts / texts that have it): "garlic" tells where we are in
    the talk, "the" does not. The share is averaged over both directions, so that length gives no advantage.

    embed : returns a unit vector for each word.
    """
    said, asked = [_words(text) for text in sentences], [_words(text) for text in steps]
    texts = [*said, *asked]
    have = Counter(word for words in texts for word in words)
    rarity = {word: float(np.log((len(texts) + 1) / (count + 0.5))) for word, count in have.items()}
    here, there = ({word: k for k, word in enumerate(sorted(set().union(*side)))} for side in (asked, said))
    C = np.ones((len(asked), len(said)), np.float32)
    if not here or not there:
        return C
    meaning = np.clip(embed(list(here)) @ embed(list(there)).T, 0, 1) ** 2
    alike = np.maximum(meaning, form_likeness(list(here), list(there)))
    best_said = np.zeros((len(here), len(said)))
    for j, words in enumerate(said):
        if words:
            best_said[:, j] = alike[:, [there[word] for word in words]].max(axis=1)
    best_asked = np.zeros((len(there), len(asked)))
    for i, words in enumerate(asked):
        if words:
            best_asked[:, i] = alike[[here[word] for word in words]].max(axis=0)
    echo = _weights(asked, here, rarity) @ best_said + (_weights(said, there, rarity) @ best_asked).T
    return np.asarray(C - echo / 2, np.float32)


def form_likeness(here: Sequence[str], there: Sequence[str]) -> Array:
    """How much two words look like forms of one word, (n, m) in [0, 1]. Helps with words that the model does not know.

    It is the length of the longest prefix of one that occurs in the other, divided by the length of the shorter word;
    0 below `STEM` letters. So inflected words and parts of compounds are similar, but rhymes are not. Accents are
    ignored.

    >>> form_likeness(["kneten", "löcher", "chopping"], ["geknetet", "bohrloch", "shopping"]).round(2).tolist()
    [[0.83, 0.0, 0.0], [0.0, 0.67, 0.0], [0.0, 0.0, 0.0]]
    """
    ours, theirs = ([_folded(word) for word in words] for words in (here, there))
    found = np.zeros((len(ours), len(theirs)))
    for i, a in enumerate(ours):
        for j, b in enumerate(theirs):
            if a[:STEM] in b or b[:STEM] in a:
                shared = max(_beginning(a, b), _beginning(b, a))
                found[i, j] = shared / min(len(a), len(b)) if shared >= STEM else 0.0
    return found


def _beginning(part: str, whole: str) -> int:
    """The length of the longest prefix of `part` that occurs in `whole`."""
    length = 0
    while length < len(part) and part[: length + 1] in whole:
        length += 1
    return length


def _folded(word: str) -> str:
    """A word without accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(WORD.findall(text.lower())))


def _weights(texts: list[list[str]], column: dict[str, int], rarity: dict[str, float]) -> Array:
    """The weight of each word in its text, by rarity, (texts, words); the weights of a text sum to 1."""
    W = np.zeros((len(texts), len(column)))
    for row, words in zip(W, texts, strict=True):
        for word in words:
            row[column[word]] = max(rarity[word], 0.05)
    return np.asarray(W / np.maximum(W.sum(axis=1, keepdims=True), 1e-9))

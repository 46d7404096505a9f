"""Match costs from single words: how far a step and a sentence echo each other's words."""

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
"""Fewest letters that two forms of a word share."""


def echo_costs(steps: Sequence[str], sentences: Sequence[str], embed: Callable[[Sequence[str]], Array]) -> Array:
    """1 − the share of their words that a step and a sentence find again in each other, (K, N) in [0, 1].

    A word is found again as far as the most similar word of the other side is like it, in meaning (the squared cosine)
    or in form (`form_likeness`). It counts log(texts / texts that have it): "garlic" says where we are, "the" does not.
    Averaged over both directions, so that neither a long sentence nor a short step wins by its length.

    embed : gives a vector of length 1 for each word.
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
    """How far two words look like forms of one word, (n, m) in [0, 1]; it helps where word vectors know little.

    The longest beginning of one that occurs in the other, as a share of the shorter one; fewer than `STEM` letters are
    chance. So inflected words and parts of compounds are alike, and words that merely rhyme are not. Accents do not
    count.

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
    """How many letters of `part`, from its first on, occur in a row in `whole`."""
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
    """(texts, words): the share that each word has in its text, by rarity."""
    W = np.zeros((len(texts), len(column)))
    for row, words in zip(W, texts, strict=True):
        for word in words:
            row[column[word]] = max(rarity[word], 0.05)
    return np.asarray(W / np.maximum(W.sum(axis=1, keepdims=True), 1e-9))

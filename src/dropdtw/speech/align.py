"""`align`: where in a recording each word of a text is spoken, which words are not, and what is not in the text.

The tokens of the text are Z, the frames are X. The table is `recurrence.ctc`: a frame matches a token at −log p(token)
and is dropped at −log p(blank).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from typing import Never

import numpy as np
import numpy.typing as npt

from dropdtw import executors
from dropdtw.orders.repeats import chain, forbid_repeats
from dropdtw.problem.errors import refuse_keywords
from dropdtw.problem.inputs import Array
from dropdtw.problem.options import takes
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec
from dropdtw.tables import recurrence
from dropdtw.tables.reducers import hard_min, soft_min

Skip = float | Sequence[float] | None


@dataclass(frozen=True)
class Token:
    """A token's frames [start, stop).

    token : its number in the vocabulary.
    score : the mean log-probability of the token in its frames.
    probability : the mean probability, over all alignments, that its frames belong to it.
    """

    token: int
    start: int
    stop: int
    score: float
    probability: float


@dataclass(frozen=True)
class Word:
    """A spoken word's frames [start, stop), from its first token to its last.

    index : its place in the text.   score, probability : the means over the frames of its tokens, as in `Token`.
    """

    index: int
    start: int
    stop: int
    score: float
    probability: float
    tokens: tuple[Token, ...] = field(repr=False)


@dataclass(frozen=True, eq=False)
class SpeechAlignment:
    """Where a text is spoken. Returned by `align`.

    cost : −log of the probability of the best path, plus what skips and garbage cost.
    words : the words that are spoken, in order.
    skipped : the places in the text of the words that are not.
    extra : [start, stop) of speech that is not in the text, at most one stretch between two words.
    spoken : (W,), the probability of each word of the text that it is spoken.
    labels : (T,), the token of each frame by its place in the text, −1 for blanks and speech that is not in the text.
    """

    cost: float
    words: tuple[Word, ...]
    skipped: tuple[int, ...]
    extra: tuple[tuple[int, int], ...]
    spoken: Array = field(repr=False)
    labels: Array = field(repr=False)


@takes()
def align(
    log_probs: npt.ArrayLike,
    words: Sequence[int | Sequence[int]],
    *,
    blank: int = 0,
    skip: Skip = None,
    garbage: float | None = None,
    within_words: bool = True,
    **unknown: Never,
) -> SpeechAlignment:
    """Align a text with the frames that a CTC model has scored.

    It minimizes −log p of the path plus the costs of skipped words and of garbage. The probabilities in the result are
    exact sums over all paths.

    Parameters
    ----------
    log_probs : (T, V), the log-probabilities of V tokens in T frames, such as a log softmax.
    words : the text, a list of words. Each is a list of tokens, or one token. They may not contain blanks.
    blank : the token of a frame without a token.
    skip : what it costs not to speak a word, in nats: one number ≥ 0, or one per word. None: every word is spoken.
        Words are skipped as a whole.
    garbage : what a frame of speech that is not in the text costs, in nats, a number ≥ 0. None: all speech is in the
        text.
    within_words : whether such speech may also interrupt words. If not, there is at most one stretch of it between two
        spoken words, before the first, and after the last.

    Returns
    -------
    A `SpeechAlignment`.

    Raises
    ------
    ValueError : if an argument is invalid, or if the text does not fit into the frames.

    >>> import numpy as np
    >>> from dropdtw import speech
    >>> p = np.full((8, 4), 0.02)
    >>> p[range(8), [1, 0, 2, 2, 0, 3, 3, 0]] = 0.94                        # what is spoken: 1, 2, 3
    >>> found = speech.align(np.log(p), [[1], [2], [1, 2], [3]], skip=4.0)  # the text has one word more
    >>> found.skipped, [(word.index, word.start, word.stop) for word in found.words]
    ((2,), [(0, 0, 1), (1, 2, 4), (3, 5, 7)])
    """
    refuse_keywords(align, unknown)
    scores = _scores(log_probs)
    T, V = scores.shape
    text = _words(words, blank, V)
    skips = None if skip is None else _skips(skip, len(text))
    tokens = [token for word in text for token in word]
    blanks = -scores[:, blank]
    C = np.ascontiguousarray(-scores[:, tokens].T)
    dropped, gaps = blanks, not within_words
    if gaps and garbage is None:
        raise ValueError("within_words is False, but there is no garbage; give garbage, a cost per frame")
    loud = blanks > (np.inf if garbage is None else garbage)
    if gaps:
        C = np.concatenate([C, np.full((1, T), _cost(garbage, "garbage"))])
    elif garbage is not None:
        dropped = -np.logaddexp(-blanks, -_cost(garbage, "garbage"))
    chained, first = chain([len(word) for word in text], skips, gaps=gaps)
    graph = forbid_repeats(chained, [*tokens, "garbage"])
    spec = Spec.of(dropped, 0.0, method=recurrence.ctc())
    problem = replace(Problem.of_costs(spec, C), graph=graph)
    best = executors.run(problem, hard_min, gradient=True)
    if not np.isfinite(best.value):
        raise ValueError(
            f"the {len(tokens)} tokens of the text do not fit into {T} frames (equal tokens in a row need a blank "
            "between them), or have probability 0; give more frames, or let words be skipped with skip="
        )
    every = executors.run(problem, soft_min(1.0), gradient=True)
    rows = np.where(best.match.any(axis=0), best.match.argmax(axis=0), -1)
    labels = np.where(rows < len(tokens), rows, -1)
    found = tuple(_found(text, labels, scores, every.match))
    into = np.bincount(graph.target, every.arcs, len(graph))
    return SpeechAlignment(
        cost=best.value,
        words=found,
        skipped=tuple(sorted(set(range(len(text))) - {word.index for word in found})),
        extra=tuple(_extra(found, labels, rows == len(tokens) if gaps else loud)),
        spoken=np.clip(into[first], 0.0, 1.0),
        labels=labels,
    )


def _found(text: list[list[int]], labels: Array, scores: Array, share: Array) -> list[Word]:
    """The words whose tokens have frames."""
    spans = {}
    frame = 0
    for label, run in groupby(labels.tolist()):
        start, frame = frame, frame + len(list(run))
        spans[label] = (start, frame)
    found = []
    for index, (word, last) in enumerate(zip(text, accumulate(map(len, text)), strict=True)):
        places = range(last - len(word), last)
        if places[0] not in spans:
            continue
        frames = [np.arange(*spans[place]) for place in places]
        score = [scores[own, token] for own, token in zip(frames, word, strict=True)]
        probability = [share[place, own] for own, place in zip(frames, places, strict=True)]
        parts = tuple(
            Token(token, *spans[place], float(s.mean()), float(p.mean()))
            for token, place, s, p in zip(word, places, score, probability, strict=True)
        )
        means = float(np.concatenate(score).mean()), float(np.concatenate(probability).mean())
        found.append(Word(index, parts[0].start, parts[-1].stop, *means, parts))
    return found


def _extra(words: Sequence[Word], labels: Array, loud: Array) -> list[tuple[int, int]]:
    """For each gap between words, the stretch from the first to the last frame that is speech, not blank."""
    found = []
    limits = [0, *(limit for word in words for limit in (word.start, word.stop)), len(labels)]
    for start, stop in zip(limits[::2], limits[1::2], strict=True):
        speech = np.flatnonzero(loud[start:stop])
        if len(speech):
            found.append((start + int(speech[0]), start + int(speech[-1]) + 1))
    return found


def _scores(log_probs: npt.ArrayLike) -> Array:
    found = np.asarray(log_probs)
    if found.ndim != 2 or 0 in found.shape or found.dtype.kind not in "fiu":
        raise ValueError(f"log_probs has shape {found.shape} and dtype {found.dtype}; give log-probabilities (T, V)")
    scores = found.astype(np.float64)
    if np.isnan(scores).any() or (scores > 1e-3).any():
        raise ValueError(
            f"log_probs has the largest value {np.max(scores):.4g}; give logarithms of probabilities, at most 0, such "
            "as a log softmax"
        )
    return scores


def _words(words: Sequence[int | Sequence[int]], blank: int, V: int) -> list[list[int]]:
    if not 0 <= blank < V:
        raise ValueError(f"blank is {blank}; give the number of a token, from 0 to {V - 1}")
    listed = [np.atleast_1d(np.asarray(word)) for word in words]
    for index, tokens in enumerate(listed):
        if tokens.size and tokens.dtype.kind not in "iu":
            raise ValueError(f"words[{index}] is {words[index]!r}; give its tokens as numbers, columns of log_probs")
    text = [[int(t) for t in tokens] for tokens in listed]
    if not text or not all(text):
        raise ValueError("the text has no words, or an empty one; give a list of words, each a list of tokens")
    for index, word in enumerate(text):
        for token in word:
            if not 0 <= token < V or token == blank:
                raise ValueError(
                    f"words[{index}] has the token {token}; give tokens from 0 to {V - 1} other than the blank, {blank}"
                )
    return text


def _skips(skip: float | Sequence[float], W: int) -> list[float]:
    listed = np.broadcast_to(np.asarray(skip, dtype=np.float64), (W,)) if np.ndim(skip) == 0 else np.asarray(skip)
    if listed.shape != (W,):
        raise ValueError(f"skip has shape {listed.shape}; give one number, or one for each of the {W} words")
    return [_cost(float(cost), "skip") for cost in listed]


def _cost(value: float | None, name: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < np.inf:
        raise ValueError(f"{name} is {value!r}; give a finite number ≥ 0, in nats")
    return float(value)

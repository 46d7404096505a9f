"""`speech.align` against enumerated subsets of words and enumerated CTC paths."""

from itertools import combinations, groupby, product

import numpy as np
import pytest

from dropdtw import speech

TEXTS = (
    [[1], [2]],
    [[1], [1]],
    [[1, 2], [2, 1], [1]],
    [[1], [2], [1]],
    [[1], [1], [1]],
    [[1, 1], [2], [1]],
    [[2], [1, 2], [2]],
)


def probabilities(T, V=3, seed=0):
    logits = np.random.default_rng(seed).normal(size=(T, V)) * 1.5
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def alignments(log_probs, words, skip=None, garbage=None, within_words=True):
    """(cost, kept words, row of each frame) of every alignment, from every path of tokens, blanks and garbage."""
    T, V = log_probs.shape
    scores = log_probs.copy()
    gaps = garbage is not None and not within_words
    if gaps:
        scores = np.concatenate([scores, np.full((T, 1), -garbage)], axis=1)
    elif garbage is not None:
        scores[:, 0] = np.logaddexp(scores[:, 0], -garbage)
    merged = {}
    for path in product(range(V + gaps), repeat=T):
        merged.setdefault(tuple(k for k, _ in groupby(path) if k), []).append(path)
    W = len(words)
    every = [kept for n in range(W + 1) for kept in combinations(range(W), n)] if skip is not None else [range(W)]
    skips = np.broadcast_to(0.0 if skip is None else skip, (W,))
    first = np.cumsum([0, *map(len, words)])
    for kept in every:
        paid = sum(skips[w] for w in range(W) if w not in kept)
        for filled in product((False, True), repeat=len(kept) + 1) if gaps else [(False,) * (W + 1)]:
            tokens = [(first[-1], V)] if filled[0] else []
            for w, after in zip(kept, filled[1:], strict=False):
                tokens += [(first[w] + n, t) for n, t in enumerate(words[w])] + [(first[-1], V)] * after
            for path in merged.get(tuple(t for _, t in tokens), ()):
                labels, at = [], -1
                for j, t in enumerate(path):
                    at += t != 0 and (j == 0 or path[j - 1] != t)
                    labels.append(tokens[at][0] if t else -1)
                yield paid - scores[range(T), path].sum(), tuple(kept), labels


@pytest.mark.parametrize("words", TEXTS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"skip": [0.7, 0.75, 0.8]},
        {"skip": [0.1, 2.0, 0.4], "garbage": 1.0},
        {"garbage": 0.5},
        {"garbage": 0.8, "within_words": False},
        {"skip": [0.9, 1.1, 0.4], "garbage": 0.7, "within_words": False},
    ],
)
def test_the_best_alignment_and_all_probabilities_are_those_of_the_enumeration(words, options):
    if isinstance(options.get("skip"), list):
        options = options | {"skip": options["skip"][: len(words)]}
    gaps = not options.get("within_words", True)
    scores = probabilities(7, seed=len(words))
    every = list(alignments(scores, words, **options))
    weights = np.exp([-cost for cost, _, _ in every])
    weights /= weights.sum()
    cost, kept, labels = min(every, key=lambda found: found[0])
    outside = sum(map(len, words))
    found = speech.align(scores, words, **options)
    assert found.cost == pytest.approx(cost)
    assert tuple(word.index for word in found.words) == kept
    assert found.labels.tolist() == [-1 if label == outside else label for label in labels]
    if gaps:
        inside = {j for start, stop in found.extra for j in range(start, stop)}
        assert inside == {j for j, label in enumerate(labels) if label == outside}
    assert found.skipped == tuple(w for w in range(len(words)) if w not in kept)
    spoken = [sum(p for p, (_, k, _) in zip(weights, every, strict=True) if w in k) for w in range(len(words))]
    assert found.spoken == pytest.approx(spoken)
    for word in found.words:
        first = sum(map(len, words[: word.index]))
        shares = []
        for n, token in enumerate(word.tokens):
            frames = range(token.start, token.stop)
            assert [labels[j] for j in frames] == [first + n] * len(frames)
            share = [
                sum(p for p, (_, _, own) in zip(weights, every, strict=True) if own[j] == first + n) for j in frames
            ]
            assert token.probability == pytest.approx(np.mean(share))
            assert token.score == pytest.approx(np.mean([scores[j, token.token] for j in frames]))
            shares += share
        assert word.probability == pytest.approx(np.mean(shares))
        assert (word.start, word.stop) == (word.tokens[0].start, word.tokens[-1].stop)


def spoken(tokens, V=6, frames=3, p=0.99):
    """Scores of a clear voice: each token for some frames, and a blank after it."""
    path = [t for token in tokens for t in [token] * frames + [0]]
    found = np.full((len(path), V), (1 - p) / (V - 1))
    found[range(len(path)), path] = p
    return np.log(found)


def test_a_missing_word_is_skipped_and_an_unknown_one_is_extra():
    text = [[1, 2], [3], [4, 5], [1]]
    found = speech.align(spoken([1, 2, 4, 5, 3, 2, 1]), text, skip=2.0, garbage=2.0)
    assert found.skipped == (1,)
    assert found.extra == ((16, 23),)  # 3 and 2, which the text does not have there
    assert found.spoken[1] < 0.1
    assert min(found.spoken[[0, 2, 3]]) > 0.99


def test_nothing_is_skipped_or_extra_where_the_text_is_right():
    text = [[1, 2], [3], [4, 5], [1]]
    found = speech.align(spoken([1, 2, 3, 4, 5, 1]), text, skip=2.0, garbage=2.0)
    assert found.skipped == ()
    assert found.extra == ()
    plain = speech.align(spoken([1, 2, 3, 4, 5, 1]), text)
    assert plain.labels.tolist() == found.labels.tolist()


def test_a_text_in_which_no_word_is_spoken_is_skipped_as_a_whole():
    found = speech.align(spoken([5, 5]), [[1, 2], [3]], skip=1.0, garbage=3.0)
    assert found.words == ()
    assert found.skipped == (0, 1)
    assert found.extra == ((0, 7),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_probs": np.zeros(3)}, r"log_probs has shape \(3,\)"),
        ({"log_probs": np.full((3, 3), 0.5)}, "largest value 0.5; give logarithms of probabilities"),
        ({"words": []}, "the text has no words"),
        ({"words": [[1], []]}, "the text has no words, or an empty one"),
        ({"words": [[1], [0]]}, r"words\[1\] has the token 0; give tokens from 0 to 2 other than the blank, 0"),
        ({"words": ["the", "fox"]}, r"words\[0\] is 'the'; give its tokens as numbers, columns of log_probs"),
        ({"words": [[1], [1.5]]}, r"words\[1\] is \[1.5\]; give its tokens as numbers"),
        ({"words": [[3]]}, r"words\[0\] has the token 3"),
        ({"words": [[1, 1, 1, 1]]}, "the 4 tokens of the text do not fit into 5 frames"),
        ({"blank": 3}, "blank is 3"),
        ({"skip": -1.0}, "skip is -1.0; give a finite number ≥ 0, in nats"),
        ({"skip": [1.0, 2.0, 3.0]}, r"skip has shape \(3,\); give one number, or one for each of the 2 words"),
        ({"garbage": np.inf}, "garbage is inf"),
        ({"within_words": False}, "within_words is False, but there is no garbage"),
    ],
)
def test_errors_say_what_to_do(change, message):
    with pytest.raises(ValueError, match=message):
        speech.align(**({"log_probs": probabilities(5), "words": [[1], [2, 1]]} | change))


def test_a_misspelled_keyword_gets_the_closest_name():
    with pytest.raises(TypeError, match="align has no option blanc; did you mean blank"):
        speech.align(np.zeros((3, 4)), [[1]], blanc=0)

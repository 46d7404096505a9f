"""How alike words sound, as costs: of matching a word of a text and one that a recognizer heard."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np

from dropdtw import executors
from dropdtw.problem.costs import Costs
from dropdtw.problem.inputs import Array
from dropdtw.tables import recurrence
from dropdtw.tables.reducers import hard_min

UNLIKE: Final = 2.5
"""Cost of a match of two words that have nothing in common, in nats."""
MISHEARD: Final = 2.5
"""How much less evidence a word is that sounds the same but is spelled otherwise, in nats."""
DISTANCE: Final = 6.0
"""How much less evidence a word is for a distance of 1 between the sounds, in nats."""
FARTHEST: Final = 0.6
"""Distance of two sounds from which words count as unlike."""
LETTER: Final = 1.1
"""Maximum evidence per letter of a word, in nats: short words are frequent, even if a short text has them once."""
PRIOR: Final = 1000
"""How many other words the frequencies of words assume, so that short texts have rare words, too."""
RELATED: Final = 0.4
"""Minimum cosine of the pairs of letters of two words; pairs of words below it are not compared."""
HASHED: Final = 512
"""Number of columns that pairs of letters are hashed to."""
BLOCK, BATCH = 1024, 1 << 14
"""Words, and pairs of words, that are compared at a time."""

PART: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+(?:[.,]\d+)*(?:st|nd|rd|th)?\b|\d+(?:[.,]\d+)*|[%&$£€]")
ONES: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
               "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")  # fmt: skip
TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
LARGE: Final = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
ORDINALS: Final = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth",
                   "nine": "ninth", "twelve": "twelfth"}  # fmt: skip
SIGNS: Final = {"%": "percent", "&": "and", "$": "dollars", "£": "pounds", "€": "euros"}
SHORT: Final = {"mr": "mister", "mrs": "missus", "dr": "doctor"}

SOUNDS: Final = [
    (re.compile(pattern), sound)
    for pattern, sound in (
        (r"^(?:kn|gn|pn)", "n"), (r"^wr", "r"), (r"^wh", "w"), (r"^x", "s"), (r"mb$", "m"), (r"ph", "f"),
        (r"(?:ti|si|ci)(?=o|a)", "x"), (r"sch|sh", "x"), (r"tch|ch", "x"), (r"gh", ""), (r"th", "t"),
        (r"ck|qu?", "k"), (r"c(?=[eiy])", "s"), (r"c", "k"), (r"dge", "j"), (r"x", "x"), (r"z", "s"), (r"v", "f"),
        (r"(.)\1+", r"\1"), (r"(?<=.)e(?=s?$)", ""), (r"y", "i"), (r"(?<=[aeiou])[aeiou]+", ""),
        (r"(?<=[aeiou])[hw](?![aeiou])", ""),
    )
]  # fmt: skip
"""Rules that turn spelling into something closer to sound, in this order. They suit English and harm no other."""
KINDS: Final = {letter: kind for kind, letters in enumerate(("aeiou", "bp", "dt", "gkj", "sx", "fw", "mn", "lr"))
                for letter in letters}  # fmt: skip
"""Letters that are easily confused."""


@lru_cache(maxsize=1 << 17)
def parts_of(word: str) -> tuple[str, ...]:
    """What is spoken for a written word: in lower case, without marks, numbers in (English) words.

    >>> parts_of("Twenty-one,"), parts_of("1984"), parts_of("3rd"), parts_of("$5")
    (('twenty', 'one'), ('nineteen', 'eighty', 'four'), ('third',), ('five', 'dollars'))
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(c))
    found: list[str] = []
    sign: list[str] = []
    for part in PART.findall(plain):
        if part in "$£€":
            sign.append(SIGNS[part])
        elif part[0].isdigit():
            found += [*_number(part), *sign]
            sign = []
        else:
            short = part.replace("'", "").replace("’", "")
            found.append(SIGNS.get(part) or SHORT.get(short, short))
    return tuple(found + sign)


def _number(text: str) -> list[str]:
    """A number in words."""
    digits = re.sub(r"[^\d.]", "", re.sub(r"(?:st|nd|rd|th)$", "", text).replace(",", ""))
    whole, _, rest = digits.partition(".")
    if not whole.isascii() or len(whole) > 12:
        return [text]
    if text[-2:] in ("st", "nd", "rd", "th"):
        *head, last = _cardinal(int(whole))
        ordinal = ORDINALS.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
        return [*head, ordinal]
    if len(whole) == 4 and "," not in text and not rest and "1100" <= whole <= "1999":  # a year
        high, low = divmod(int(whole), 100)
        return [*_cardinal(high), *(["hundred"] if low == 0 else (["oh"] if low < 10 else []) + _cardinal(low))]
    spoken = _cardinal(int(whole))
    return [*spoken, "point", *(ONES[int(digit)] for digit in rest if digit in "0123456789")] if rest else spoken


def _cardinal(n: int) -> list[str]:
    for size, name in LARGE:
        if n >= size:
            high, low = divmod(n, size)
            return [*_cardinal(high), name, *(_cardinal(low) if low else ())]
    if n < 20:
        return [ONES[n]]
    high, low = divmod(n, 10)
    return [TENS[high - 2], *([ONES[low]] if low else ())]


def sound(word: str) -> str:
    """A word by its sound, roughly: words that sound the same in English mostly get the same letters.

    >>> sound("knight") == sound("night"), sound("their") == sound("there"), sound("colour") == sound("color")
    (True, True, True)
    """
    found = word
    for pattern, by in SOUNDS:
        found = pattern.sub(by, found)
    return found or word


class Sounds:
    """The words of a text and of a transcript as codes, and the cost of each pair of codes.

    z, x : the code of each word.
    evidence : what each distinct z tells if it is heard, in nats.
    table : the cost of each pair of distinct words, (distinct z, distinct x), in nats: −log of how much more likely the
        match makes the word that was heard.
    """

    def __init__(self, text: Sequence[str], heard: Sequence[str]) -> None:
        counts = Counter(text) + Counter(heard)
        total = sum(counts.values()) + PRIOR
        self.kinds_z, self.kinds_x = list(dict.fromkeys(text)), list(dict.fromkeys(heard))
        codes = [{word: k for k, word in enumerate(kinds)} for kinds in (self.kinds_z, self.kinds_x)]
        self.z, self.x = (
            np.array([code[word] for word in words], np.int32) for code, words in zip(codes, (text, heard), strict=True)
        )
        evidence = {
            word: min(float(np.log(total / count)), LETTER * (len(word) + 0.5)) for word, count in counts.items()
        }
        in_z, in_x = (np.array([evidence[word] for word in kinds]) for kinds in (self.kinds_z, self.kinds_x))
        self.evidence = in_z
        self.table = np.full((len(in_z), len(in_x)), UNLIKE, np.float32)
        for i, j, apart in _alike(self.kinds_z, self.kinds_x):
            told = np.minimum(in_z[i], in_x[j]) - MISHEARD - DISTANCE * apart
            self.table[i, j] = np.minimum(UNLIKE, -told)
        same = [(i, codes[1][word]) for word, i in codes[0].items() if word in codes[1]]
        if same:
            i, j = np.array(same).T
            self.table[i, j] = -in_z[i]

    def costs(self, rows: slice, columns: slice) -> Array:
        """The costs of the words in these rows and columns."""
        return self.table[self.z[rows, None], self.x[columns]]


def _alike(here: Sequence[str], there: Sequence[str]) -> Iterator[tuple[Array, Array, Array]]:
    """The pairs of words that sound alike: their places, and the distance of their sounds in [0, `FARTHEST`)."""
    left, right = ([sound(word) for word in words] for words in (here, there))
    letters = sorted(set("".join((*left, *right))))
    sides = [_pairs_of_letters(words, letters) for words in (left, right)]
    for start in range(0, len(left), BLOCK):
        i, j = np.nonzero(sides[0][start : start + BLOCK] @ sides[1].T >= RELATED)
        i += start
        for first in range(0, len(i), BATCH):
            rows, columns = i[first : first + BATCH], j[first : first + BATCH]
            apart = distances([left[k] for k in rows], [right[k] for k in columns])
            near = apart < FARTHEST
            yield rows[near], columns[near], apart[near]


def _pairs_of_letters(words: Sequence[str], letters: Sequence[str]) -> Array:
    """Which letters, and pairs of letters, a word has, as unit vectors."""
    found = np.zeros((len(words), HASHED), np.float32)
    number = {letter: k + 1 for k, letter in enumerate(letters)}
    for row, word in zip(found, words, strict=True):
        codes = [0, *(number[c] for c in word), 0]
        for a, b in pairwise(codes):
            row[(a * 31 + b * 7) % HASHED] += 1
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9))


def distances(here: Sequence[str], there: Sequence[str]) -> Array:
    """The edit distance of each pair of sounds, divided by the length of the longer one, (n,).

    Letters of one kind, such as two vowels, cost half.

    >>> distances(["kat", "kat"], ["kut", "dog"]).round(2).tolist()
    [0.17, 0.83]
    """
    if not len(here):
        return np.empty(0)
    letters = sorted(set("".join((*here, *there))))
    number = {letter: k for k, letter in enumerate(letters)}
    kind = np.array([KINDS.get(letter, -1 - k) for k, letter in enumerate(letters)])
    apart = np.where(kind[:, None] == kind, 0.5, 1.0)
    np.fill_diagonal(apart, 0.0)
    lengths = [np.array([len(word) for word in words]) for words in (here, there)]
    codes = []
    for words, sizes in zip((here, there), lengths, strict=True):
        padded = np.zeros((len(words), int(sizes.max())), np.intp)
        padded[np.arange(padded.shape[1]) < sizes[:, None]] = [number[c] for word in words for c in word]
        codes.append(padded)
    C = apart[codes[0][:, :, None], codes[1][:, None, :]]
    B, K, N = C.shape
    table = recurrence.needleman_wunsch()
    batch = Costs(C, np.ones((B, N)), np.ones((B, K)), None, (lengths[0], lengths[1]))
    found, *_ = executors.choose(table).run_batch(table, hard_min, batch)
    return np.asarray(found / np.maximum(*lengths))

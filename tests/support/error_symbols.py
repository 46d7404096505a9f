"""One call for each mistake with symbols."""

import sys
from types import ModuleType
from unittest import mock

import numpy as np

import dropdtw
from dropdtw import align, pairwise, solve
from dropdtw.costs import Lookup
from error_calls import C, X, case

AG = {("A", "G"): 0.5}


class Odd:
    __hash__ = None


class Scores(np.ndarray):
    """A score matrix as Biopython has them: it can be indexed by two letters."""

    alphabet = "AG"

    def __getitem__(self, pair):
        return super().__getitem__(tuple(map(self.alphabet.index, pair)))


def biopython():
    """A stand-in for Biopython, with one score matrix, "TOY"."""
    found = ModuleType("Bio.Align")
    scores = np.array([[4.0, -1.0], [-2.0, 5.0]]).view(Scores)
    found.substitution_matrices = mock.Mock(load=lambda name=None: ["TOY"] if name is None else scores)
    return mock.patch.dict(sys.modules, {"Bio": ModuleType("Bio"), "Bio.Align": found})


def named(modules, name):
    """Align with a score matrix."""
    with modules:
        align("AG", "GA", match=name)


SYMBOLS = {
    "mixed elements": case(lambda: align(["a", 1], ["a"]), "Z holds 'a' (str) and Z holds 1 (int)", "the same type"),
    "bytes": case(lambda: align("a", b"a"), "X holds 97 (int)", "give all as the same type"),
    "numbers beside symbols": case(
        lambda: align("123", [1, 2, 3]), "Z is '123', which holds symbols, and X is the list [1, 2, 3]", "for both"
    ),
    "vectors beside symbols": case(
        lambda: pairwise(["ab", "cd"], [[1, 2], "cd"]), "Xs[0] is the list [1, 2], which does not", "or symbols"
    ),
    "numbers as strings": case(
        lambda: align(["1.0", "2"], ["1"]), "Z holds numbers as strings, such as '1.0'", "np.asarray(Z, float)"
    ),
    "unhashable": case(lambda: align([["a"], ["b"]], "ab"), "element 0 of Z is the list ['a'], which is not", "tuples"),
    "unhashable object": case(lambda: align([Odd()], "ab"), "element 0 of Z is <", "give symbols that are"),
    "empty": case(lambda: align("", "ab"), "Z is empty", "give at least one symbol"),
    "two axes": case(lambda: align(X, X, match=AG), "Z has shape (3, 2)", "as symbols, give one per element"),
    "no sequence": case(lambda: align(3, "ab", match=AG), "Z is 3", "give a sequence of symbols"),
    "unknown symbol": case(lambda: align("AT", "G", match=AG), "'T' is not among its symbols 'A', 'G'", "defaultdict"),
    "unknown pair": case(
        lambda: align("A", "T", match={("A", "G"): 1, ("G", "T"): 1}), "no cost for 'A' with 'T'", "defaultdict"
    ),
    "symbol of another type": case(
        lambda: align([1], "G", match={("1", "G"): 1}), "no cost for 1 with 'G'", "it has '1' (str), but no 1 (int)"
    ),
    "key": case(lambda: align("A", "G", match={"AG": 1}), "match is {'AG': 1}", "give pairs of symbols as keys"),
    "cost": case(lambda: Lookup({("A", "G"): "1"}), "match has the cost '1' for ('A', 'G')", "give a number, or +inf"),
    "cost NaN": case(lambda: Lookup({("{", "G"): float("nan")}), "the cost nan for ('{', 'G')", "give a number"),
    "metric of numbers": case(
        lambda: align("AT", "G", match="cosine"), "match is 'cosine', which compares numbers", "use 'equal', or give"
    ),
    "softmax": case(lambda: align("AT", "G", match="softmax:2"), "'softmax:2', which compares numbers", "use 'equal'"),
    "method of numbers": case(
        lambda: align("AT", "G", method="ddtw"), "method 'ddtw' computes with", "or give numbers"
    ),
    "function of matrices": case(
        lambda: align("AT", "G", match=lambda Z, X: [[1.0]]), "match('A', 'G') returned the list", "returns a number"
    ),
    "symbols in costs": case(
        lambda: dropdtw.costs.resolve(Lookup(AG), 1).cost(X, X),
        "match is Lookup(",
        "use align, distance, pairwise, find",
    ),
    "text of numbers": case(lambda: solve(C).text(), "this alignment is not one of symbols", "give text(Z, X)"),
    "text of another length": case(lambda: solve(C).text("ab", "ab"), "X has 2 symbols for 4 elements", "one for each"),
    "text width": case(lambda: align("AT", "A").text(width=3), "width is 3", "20 or more"),
    "unknown score matrix": case(
        lambda: named(biopython(), "TOI"), "is 'TOI', which is no score", "did you mean 'TOY'"
    ),
    "no Biopython": case(
        lambda: named(mock.patch.dict(sys.modules, {"Bio.Align": None}), "BLOSUM0"),
        "match is 'BLOSUM0', a score matrix of Biopython",
        "pip install biopython",
    ),
    "list of strings": case(lambda: pairwise("AT"), "Zs is 'AT'", "give a list of sequences"),
}

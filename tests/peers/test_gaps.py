"""Opening costs are affine gaps: Needleman–Wunsch and Smith–Waterman against parasail and Biopython on BLOSUM62.

Theirs: a gap of k letters costs open + (k − 1) · extend. Ours: a run of k drops costs open + k · drop. So drop = extend
and our opening cost is theirs − extend. A score is −cost. Z is parasail's first sequence and Biopython's target; what
is dropped of X is Biopython's insertion, what is dropped of Z its deletion.
"""

import numpy as np
import parasail
import pytest
from Bio.Align import PairwiseAligner, substitution_matrices
from pytest import approx

import dropdtw

BLOSUM62 = substitution_matrices.load("BLOSUM62")
LETTERS = "ARNDCQEGHILKMFPSTWYV"
LENGTHS = [(1, 1), (1, 9), (9, 1), (2, 3), (8, 13), (20, 20), (31, 64), (65, 33), (150, 90), (257, 300)]
SMALL = 700  # cells that the reference executor is asked to fill
MODES = {"needleman_wunsch": "global", "smith_waterman": "local"}
PRICES = [(11, 1), (10, 2), (5, 5), (1, 1), (12, 0), (40, 3)]  # open and extend, as they mean them
every_method = pytest.mark.parametrize("method", MODES)


def random_protein(length, rng):
    return "".join(rng.choice(list(LETTERS), length))


def relative(protein, length, rng):
    """A protein of about this length in which long stretches of the other survive, some letters changed."""
    start, stop = sorted(rng.integers(0, len(protein) + 1, 2))
    kept = [c if rng.random() < 0.8 else rng.choice(list(LETTERS)) for c in protein[:start] + protein[stop:]]
    at = rng.integers(0, len(kept) + 1)
    made = "".join(kept[:at]) + random_protein(max(length - len(kept), 0), rng) + "".join(kept[at:])
    return made[:length]


def pairs_of_proteins(seed):
    """For each pair of lengths two strangers and two relatives."""
    rng = np.random.default_rng(seed)
    for K, N in LENGTHS:
        z = random_protein(K, rng)
        yield z, random_protein(N, rng)
        yield z, relative(z, N, rng)


def match_costs(z, x, dtype=float, matrix=BLOSUM62):
    return -np.array([[matrix[a, b] for b in x] for a in z], dtype=dtype)


def biopython(method, z_price, x_price, matrix=BLOSUM62):
    aligner = PairwiseAligner(mode=MODES[method], substitution_matrix=matrix)
    aligner.open_deletion_score, aligner.extend_deletion_score = (-price for price in z_price)
    aligner.open_insertion_score, aligner.extend_insertion_score = (-price for price in x_price)
    return aligner


def ours(method, z_price, x_price):
    """The same prices in our terms."""
    (open_z, drop_z), (open_x, drop_x) = z_price, x_price
    return {
        "method": method,
        "drop_z": drop_z,
        "drop_x": drop_x,
        "open_z": open_z - drop_z,
        "open_x": open_x - drop_x,
    }


@every_method
@pytest.mark.parametrize("price", PRICES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_those_of_parasail_and_biopython(method, price, dtype, executor):
    score = {"needleman_wunsch": parasail.nw, "smith_waterman": parasail.sw}[method]
    aligner = biopython(method, price, price)
    for z, x in pairs_of_proteins(seed=price[0]):
        if executor == "reference" and len(z) * len(x) > SMALL:
            continue
        C = match_costs(z, x, dtype)
        value = dropdtw.cost(C, **ours(method, price, price), executor=executor)
        assert -value == score(z, x, *price, parasail.blosum62).score  # whole numbers: nothing is rounded
        assert -value == aligner.score(z, x)
        assert dropdtw.solve(C, **ours(method, price, price), executor=executor).cost == value


@every_method
@pytest.mark.parametrize("name", ["BLOSUM62", "PAM250"])
def test_strings_and_the_name_of_a_matrix_give_the_scores_of_biopython(method, name):
    aligner = biopython(method, (11, 1), (11, 1), substitution_matrices.load(name))
    for z, x in pairs_of_proteins(seed=3):
        how = {"match": name, **ours(method, (11, 1), (11, 1))}
        assert -dropdtw.distance(z, x, **how) == aligner.score(z, x)
        assert dropdtw.align(z, x, **how).cost == dropdtw.distance(z, x, **how)


@pytest.mark.parametrize("shape", [(1, 1), (40, 30), (300, 500)], ids=str)
def test_letters_have_the_edit_scores_of_parasail(shape):
    rng = np.random.default_rng(4)
    z, x = ("".join(rng.choice(list("ACGT"), length)) for length in shape)
    score = parasail.nw(z, x, 1, 1, parasail.matrix_create("ACGT", 0, -1)).score
    a = dropdtw.align(z, x, 1, 1, method="needleman_wunsch")
    assert a.cost == a.rescore() == -score


@every_method
def test_each_sequence_may_have_prices_of_its_own(method, executor):
    """Only Biopython's gaps may cost differently on the two sides, and by fractions."""
    rng = np.random.default_rng(1)
    for z, x in pairs_of_proteins(seed=1):
        if executor == "reference" and len(z) * len(x) > SMALL:
            continue
        for _ in range(5):
            extend, more = rng.integers(0, 17, 2) / 4, rng.integers(0, 49, 2) / 4
            z_price, x_price = np.stack([extend + more, extend], axis=1).tolist()
            value = dropdtw.cost(match_costs(z, x), **ours(method, z_price, x_price), executor=executor)
            assert -value == biopython(method, z_price, x_price).score(z, x)  # quarters are exact too


@every_method
def test_alignments_are_among_the_best_of_biopython(method, executor):
    """Equal letters side by side make ties, so Biopython lists all it finds; ours must be one of them.

    The matrix has fractions: a local alignment may begin or end with a pair that scores 0, and Biopython leaves it out.
    """
    rng = np.random.default_rng(2)
    fractions = BLOSUM62 + rng.normal(scale=0.1, size=BLOSUM62.shape)
    for K, N in [(1, 1), (1, 9), (9, 1), (4, 4), (8, 13), (13, 8), (20, 20)]:
        z = random_protein(K, rng)
        for x in (random_protein(N, rng), relative(z, N, rng)):
            for price in ((11, 1), (3, 1), (2, 2)):
                aligner = biopython(method, price, price, fractions)
                a = dropdtw.solve(match_costs(z, x, matrix=fractions), **ours(method, price, price), executor=executor)
                assert -a.cost == approx(aligner.score(z, x), abs=1e-9)
                listed = [matches(alignment) for alignment in aligner.align(z, x)]
                assert a.pairs.tolist() in (listed or [[]])  # none is listed for a local score of 0


def matches(alignment):
    """The matched pairs of an alignment of Biopython's, which holds stretches without a gap."""
    stretches = zip(*alignment.aligned, strict=True)
    return [[int(i + k), int(j + k)] for (i, stop), (j, _) in stretches for k in range(stop - i)]

"""Columns of data frames are matched by name, wherever sequences are accepted."""

import warnings

import numpy as np
import pytest

import dropdtw
from cli_cases import run

pd = pytest.importorskip("pandas")

A = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=["u", "v", "w"])
B = A[["w", "u", "v"]]
OTHER = A.rename(columns={"u": "temp"})


def estimated(kind, fitted, new):
    pytest.importorskip("sklearn")
    return getattr(pytest.importorskip("dropdtw.sklearn"), kind)(**fitted).fit([A, A + 9]).transform([new])


def pushed(Z, rows):
    o = dropdtw.Online(Z, drop_x=0.1)
    for _, row in rows.iterrows():
        o.push(row)
    return o.finish().cost


def stored(frames, folder):
    pytest.importorskip("pyarrow")
    dropdtw.corpus.write(f"{folder}/a.parquet", ((f"r{k}", X) for k, X in enumerate(frames)), group=1)
    dropdtw.corpus.pairwise(folder, folder, f"{folder}-out", drop_x=0.1, progress=False)
    found = pytest.importorskip("pyarrow.parquet").read_table(f"{folder}-out/parts")
    return max(found["cost"].to_pylist())


VERBS = {
    "distance": lambda X, folder: dropdtw.distance(A, X, drop_x=0.1),
    "pairwise": lambda X, folder: dropdtw.pairwise([A], [X], drop_x=0.1).max(),
    "pairwise, alone": lambda X, folder: dropdtw.pairwise([A, X], drop_x=0.1).max(),
    "pairwise, first an array": lambda X, folder: dropdtw.pairwise([A.to_numpy()], [A, X], drop_x=0.1).max(),
    "alignments": lambda X, folder: dropdtw.alignments([A], [X], drop_x=0.1)[0][0].cost,
    "nearest": lambda X, folder: dropdtw.nearest(X, [A], 1, drop_x=0.1).costs[0],
    "Index": lambda X, folder: dropdtw.nearest(A, dropdtw.Index(iter([A, X])), 2, drop_x=0.1).costs[-1],
    "barycenter": lambda X, folder: dropdtw.barycenter([A, X]).cost,
    "barycenter, init": lambda X, folder: dropdtw.barycenter([A], init=X).cost,
    "Online": lambda X, folder: pushed(A, X),
    "find": lambda X, folder: dropdtw.find(A, X, 1, drop_x=0.1)[0].cost,
    "AlignmentTransformer": lambda X, folder: estimated("AlignmentTransformer", {"drop_x": 0.1}, X).min(),
    "prototypes": lambda X, folder: estimated("AlignmentTransformer", {"prototypes": [X]}, A).min(),
    "AlignmentKMeans": lambda X, folder: estimated("AlignmentKMeans", {"n_clusters": 1, "init": [X]}, A + 4.5).min(),
    "corpus": lambda X, folder: stored([A, X], folder),
}


@pytest.mark.parametrize("verb", VERBS)
def test_columns_are_matched_by_name(verb, tmp_path):
    values = [VERBS[verb](X, str(tmp_path / str(k))) for k, X in enumerate((A, B))]
    assert values[0] == values[1] == pytest.approx(0, abs=1e-9)
    with pytest.raises(ValueError, match=r" has the columns .*; give both the same columns"):
        VERBS[verb](OTHER, str(tmp_path / "other"))


def test_arrays_have_no_names():
    assert dropdtw.pairwise([A], [B.to_numpy()], drop_x=0.1).max() > 1
    index = dropdtw.Index([A.to_numpy()])
    assert [dropdtw.nearest(X, index, 1, drop_x=0.1).costs[0] > 1 for X in (A, B, OTHER)] == [False, True, False]


def test_an_extra_column_is_named():
    with pytest.raises(ValueError, match=r"^X also has the column w, which Z lacks; give both the same columns$"):
        dropdtw.align(A[["v", "u"]], B)
    with pytest.raises(ValueError, match=r"^Zs\[1\] also has the columns v,w, which Zs\[0\] lacks"):
        dropdtw.pairwise([A[["u"]], A])


def test_an_index_left_among_the_columns_is_named():
    with pytest.raises(ValueError, match=r"^column 'Timestamp' of X is not numeric; drop it, .*index_col='Timestamp'"):
        dropdtw.align(A.to_numpy(), A.assign(Timestamp="2024-05-01T12:00"))


def test_a_column_of_symbols_is_named():
    with pytest.raises(ValueError, match=r"if it holds symbols, give it alone: Z\['event'\]$"):
        dropdtw.align(pd.DataFrame({"event": ["open", "close"]}), pd.DataFrame({"event": ["open"]}))


def test_booleans_and_missing_numbers_are_read():
    flags = pd.DataFrame({"u": [0.5, 2, 3], "on": [True, False, True]})
    assert dropdtw.align(flags, flags.to_numpy(float)[:, [0, 1]]).cost == 0
    holes = flags.assign(n=pd.array([1, None, 3], dtype="Int64"))
    with pytest.raises(ValueError, match=r"^Z has NaN or infinity in element 1, column 'n'; remove such"):
        dropdtw.align(holes, holes)
    assert dropdtw.align(holes, holes, missing="drop").missing_z.tolist() == [False, True, False]


def test_dates_as_strings_are_no_times():
    dates = pd.date_range("2024-05-01 08:00", periods=20, freq="s")
    with pytest.warns(UserWarning, match="the index of X holds strings and is not used as times; parse it with pd.to_"):
        dropdtw.align(A, A.set_axis(dates.astype(str)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dropdtw.align(A.set_axis(map("step {}".format, range(20))), A.set_axis(dates))


def test_retrieve_takes_the_column_of_times_of_both(tmp_path):
    (tmp_path / "corpus").mkdir()
    A.rename_axis("ms").to_csv(tmp_path / "query.csv")
    B.set_axis(pd.date_range("2024-05-01", periods=20, freq="s")).rename_axis("Timestamp").to_csv(
        tmp_path / "corpus" / "a.csv"
    )
    done = run("retrieve", tmp_path / "query.csv", tmp_path / "corpus", "--time", "ms,Timestamp", "--drop-x", ".1")
    assert "a.csv" in done.output, done.output

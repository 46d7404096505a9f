"""Sequences from files and alignments into files."""

import io as memory
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import dropdtw
from dropdtw.files import formats
from dropdtw.problem.clock import clocks_of

VALUES = np.array([[1.0, 2.5], [-3.0, 4.0], [0.0, 1e-3]])


def csv(a, mark=",", head=""):
    return head + "\n".join(mark.join(map(repr, row)) for row in a.tolist()) + "\n"


def npz(**arrays):
    out = memory.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def npy(a, **options):
    out = memory.BytesIO()
    np.save(out, a, **options)
    return out.getvalue()


FILES = {
    "a.npy": npy(VALUES),
    "a.npz": npz(only=VALUES),
    "a.csv": csv(VALUES),
    "names.csv": csv(VALUES, head="speed,height\n"),
    "bom.csv": "\ufeff" + csv(VALUES, head="# recorded today\n\n"),
    "semicolon.csv": csv(VALUES, ";"),
    "a.tsv": csv(VALUES, "\t"),
    "a.txt": csv(VALUES, "   "),
    "a.JSONL": "\n".join(json.dumps(row) for row in VALUES.tolist()),
    "objects.ndjson": "\n".join(json.dumps({"u": u, "v": v}) for u, v in VALUES.tolist()) + "\n\n",
    "vectors.jsonl": "\n".join(json.dumps({"vector": row}) for row in VALUES.tolist()),
    "a.json": json.dumps(VALUES.tolist()),
}
every_file = pytest.mark.parametrize("name", FILES)


def put(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


@every_file
def test_every_format_gives_the_same_sequence(tmp_path, name):
    np.testing.assert_array_equal(formats.read(put(tmp_path, name, FILES[name])), VALUES)


class Piped:
    def __init__(self, content):
        self.buffer = memory.BytesIO(content.encode() if isinstance(content, str) else content)


@every_file
def test_standard_input_is_read_in_every_format(monkeypatch, name):
    monkeypatch.setattr(sys, "stdin", Piped(FILES[name]))
    np.testing.assert_array_equal(formats.read("-"), VALUES)


def test_numbers_are_a_sequence(tmp_path):
    assert formats.read(put(tmp_path, "a.txt", "1\n2\n3\n")).tolist() == [[1], [2], [3]]
    assert formats.read(put(tmp_path, "a.jsonl", "1\n2\n")).tolist() == [[1], [2]]
    assert formats.read(put(tmp_path, "a.json", "[1, 2]")).tolist() == [[1], [2]]


def test_array_of_several_is_named(tmp_path):
    path = put(tmp_path, "two.npz", npz(Z=VALUES, X=VALUES[:1]))
    np.testing.assert_array_equal(formats.read(f"{path}:X"), VALUES[:1])
    assert formats.sequences(path) == [f"{path}:Z", f"{path}:X"]


WRONG = {
    "two.npz": (npz(Z=VALUES, X=VALUES), r"holds 2 arrays \(Z, X\); name one"),
    "broken.npz": (b"PK and nothing", "cannot be read as .npz"),
    "broken.npy": (b"nothing", "does not begin like an .npy file"),
    "pickled.npy": (npy(np.array([{}], object), allow_pickle=True), "allow_pickle=False"),
    "short.npy": (npy(VALUES)[:-8], "cannot be read as .npy"),
    "cube.npy": (npy(np.zeros((2, 2, 2))), r"shape \(2, 2, 2\)"),
    "empty.csv": ("", "is empty"),
    "names.csv": ("a,b\n", "it has no rows"),
    "comment.csv": ("# nothing\n", "it has no rows"),
    "cell.csv": ("1,2\n\n3,x\n", "line 3, column 2 is 'x', not a number"),
    "prose.txt": (
        "Boil 2 eggs, then\nwait.\n",
        "prose.txt holds text, not numbers; `dropdtw align --text`",
    ),
    "line.txt": ("Now boil the water.\n", "holds text, not numbers"),
    "cell.txt": ("level speed\n1 2\n3 high\n", r"cannot be read as .txt: line 3, column 2 \(speed\) is 'high', not a"),
    "ragged.txt": ("level speed\n1 2\n3\n", "cannot be read as .txt: row 2 has 1 numbers"),
    "hole.csv": ("1,2\n3,\n", "hole.csv has NaN"),
    "ragged.csv": ("1,2\n3\n", "row 2 has 1 numbers, the first one 2"),
    "nan.csv": ("1,2\nnan,3\n", "NaN or infinity in element 1"),
    "endless.csv": (f"1,{'2' * 200_000}", "field larger than field limit"),
    "a.json": ('{"a": 1}', "not a list of rows"),
    "none.json": ("[]", "it has no rows"),
    "bool.jsonl": ("[true]", "column 1 is True, not a number"),
    "line.jsonl": ("[1]\n[2\n", "line 2 is not JSON"),
    "keys.jsonl": ('{"a": 1}\n{"b": 1}', "line 2 has the keys b, the first one a"),
    "a.wav": ("x", "ends in '.wav'; sequences are read from .npy"),
    "plain": ("x", "plain has no file extension; sequences are read from .npy"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_are_named_with_the_reason(tmp_path, name):
    content, reason = WRONG[name]
    path = put(tmp_path, name, content)
    with pytest.raises(ValueError, match=reason) as raised:
        formats.read(path)
    assert path in str(raised.value)


def test_missing_things(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*x\.npy"):
        formats.read(tmp_path / "x.npy")
    with pytest.raises(ValueError, match="is a folder"):
        formats.read(tmp_path)
    path = put(tmp_path, "a.npz", npz(Z=VALUES))
    with pytest.raises(ValueError, match="no array 'Y'; its arrays are Z"):
        formats.read(f"{path}:Y")


def test_corpus_is_a_folder_with_subfolders(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("b.npy", "deep/a.csv", "notes.md"):
        put(tmp_path, name, FILES["a.npy"])
    assert formats.sequences(tmp_path) == [str(tmp_path / "b.npy"), str(tmp_path / "deep" / "a.csv")]
    with pytest.raises(ValueError, match=r"neither a folder nor an \.npz"):
        formats.sequences(tmp_path / "notes.md")
    with pytest.raises(ValueError, match=r"cannot be read as \.npz"):
        formats.sequences(put(tmp_path, "bad.npz", "PK"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="contains no sequences"):
        formats.sequences(tmp_path / "empty")


# --- Parquet ----------------------------------------------------------------------------------------------------


def test_parquet_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"parquet files need pyarrow: pip install 'dropdtw\[parquet\]'"):
        formats.read(put(tmp_path, "a.parquet", b"PAR1"))


@pytest.mark.parametrize("layout", ["columns", "vectors"])
def test_parquet_has_numbers_in_columns_or_a_vector_a_row(tmp_path, layout):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'dropdtw[parquet]'")
    from pyarrow import parquet

    columns = {"u": VALUES[:, 0], "v": VALUES[:, 1]} if layout == "columns" else {"x": VALUES.tolist()}
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    np.testing.assert_array_equal(formats.read(tmp_path / "a.parquet"), VALUES)


def test_broken_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'dropdtw[parquet]'")
    with pytest.raises(ValueError, match=r"cannot be read as \.parquet: .*footer"):
        formats.read(put(tmp_path, "a.parquet", b"PAR1 broken PAR1"))


# --- Alignments -------------------------------------------------------------------------------------------------


@pytest.fixture
def found():
    C = np.array([[0, 0, 9, 9, 9, 9.0], [9, 9, 9, 9, 9, 9], [9, 9, 9, 0, 9, 0]])
    return dropdtw.solve(C, drop_x=1.0, drop_z=2.0)


@pytest.mark.parametrize("costs", [True, False])
def test_json_reads_back(found, costs):
    found = replace(found, clocks=clocks_of(found.shape, fps=2))
    data = json.loads(formats.alignment_content(found, ".json", costs=costs))
    again = dropdtw.Alignment.from_dict(data)
    np.testing.assert_array_equal(again.pairs, found.pairs)
    assert (again.problem is not None) == costs
    first = data["segments"][0]
    assert (first["start_time"], first["stop_time"]) == (0.0, 1.0)
    assert again.segments()[0].stop_time == 1.0


def test_csv_has_every_match_and_every_drop_in_order(found):
    text = formats.alignment_content(replace(found, clocks=clocks_of(found.shape, fps=(1, 4))), ".csv")
    assert text.splitlines() == [
        "what,z,x,start_time,stop_time,start_time_z,stop_time_z",
        "match,0,0,0,0.25,0,1",
        "match,0,1,0.25,0.5,0,1",
        "drop_x,,2,0.5,0.75,,",
        "drop_z,1,,,,1,2",
        "match,2,3,0.75,1,2,3",
        "drop_x,,4,1,1.25,,",
        "match,2,5,1.25,1.5,2,3",
    ]
    assert formats.alignment_content(found, ".csv").splitlines()[:2] == ["what,z,x", "match,0,0"]


def test_npz_holds_all_of_it_without_pickles(found):
    found = replace(found, clocks=clocks_of(found.shape, fps=4))
    with np.load(memory.BytesIO(formats.alignment_content(found, ".npz")), allow_pickle=False) as data:
        np.testing.assert_array_equal(data["pairs"], found.pairs)
        np.testing.assert_array_equal(data["dropped_z"], found.dropped_z)
        assert (str(data["method"]), float(data["cost"])) == ("drop_dtw", found.cost)
        assert data["times_x"].tolist() == [[j / 4, (j + 1) / 4] for j in range(found.shape[1])]
        again = dropdtw.solve(data["C"], data["drop_x"], data["drop_z"])
        np.testing.assert_array_equal(again.pairs, found.pairs)
        assert data["segments"].tolist() == [list(s) for s in found.segments()]


def test_npz_leaves_costs_out_when_asked_or_when_they_are_many(found, monkeypatch):
    def names(**options):
        with np.load(memory.BytesIO(formats.alignment_content(found, ".npz", **options))) as data:
            return set(data.files)

    assert "C" not in names(costs=False)
    monkeypatch.setattr("dropdtw.files.formats.MANY_CELLS", 5)
    assert "C" not in names()
    assert "C" in names(costs=True)


def test_unknown_ends(found):
    with pytest.raises(ValueError, match=r"written as .json, .csv, .npz, not '.xml'"):
        formats.alignment_content(found, ".xml")


def test_standard_output_takes_bytes_and_text(capsysbinary, monkeypatch, tmp_path):
    formats.write("-", b"\x00bytes")
    formats.write("-", "text")
    assert capsysbinary.readouterr().out == b"\x00bytestext"
    only_text = memory.StringIO()
    monkeypatch.setattr(sys, "stdout", only_text)
    formats.write("-", "text")
    assert only_text.getvalue() == "text"
    formats.write(tmp_path / "a" / "b.txt", "kept")
    assert (tmp_path / "a" / "b.txt").read_text() == "kept"


@pytest.mark.parametrize("mark", [";", "\t"])
def test_decimal_commas_are_read_where_another_mark_parts_the_columns(tmp_path, mark):
    place = tmp_path / "a.csv"
    place.write_text(f"x{mark}y\n1,5{mark}-2\n,25{mark}3,0e2\n")
    assert formats.read(place).tolist() == [[1.5, -2.0], [0.25, 300.0]]


def test_where_points_are_used_a_comma_is_no_decimal_sign(tmp_path):
    place = tmp_path / "a.csv"
    place.write_text("1.5;2,000\n")
    with pytest.raises(ValueError, match="line 1, column 2 is '2,000', not a number"):
        formats.read(place)

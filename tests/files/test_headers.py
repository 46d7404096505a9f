"""Lines of names in tables of text: told by their content, or by the caller."""

import warnings

import numpy as np
import pytest

from dropdtw.files import formats


def read(folder, text, name="a.csv", **options):
    (folder / name).write_text(text)
    return formats.read(folder / name, **options).tolist()


@pytest.mark.parametrize("mark", [",", ";", "\t", " "])
@pytest.mark.parametrize("d", [2, 3, 40])
def test_numbered_columns_are_no_element(tmp_path, mark, d):
    rows = np.arange(2.0 * d).reshape(2, d) / 8
    lines = [mark.join(map(str, range(d))), *(mark.join(map(repr, row)) for row in rows.tolist())]
    with pytest.warns(UserWarning, match=r"first line of .*a\.csv, '0,1.*column names.*--no-header"):
        assert read(tmp_path, "\n".join(lines)) == rows.tolist()


def test_what_pandas_writes_comes_back(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    rows = np.arange(6.0).reshape(2, 3)
    with pytest.warns(UserWarning, match="first line of .*'0,1,2'"):
        assert read(tmp_path, pandas.DataFrame(rows).to_csv(index=False)) == rows.tolist()


@pytest.mark.parametrize("columns", [["a", "b", "c"], None])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("first", [0, 100])
def test_row_numbers_are_no_feature(tmp_path, columns, width, first):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    rows = np.arange(3.0 * width).reshape(3, width) / 8
    table = pandas.DataFrame(rows, range(first, first + 3), columns and columns[:width]).to_csv()
    with pytest.warns(UserWarning, match=r"first column of .*a\.csv, .*row numbers that pandas wrote") as said:
        assert read(tmp_path, table) == rows.tolist()
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = formats.read_table(tmp_path / "a.csv", time="")  # asked for as times, they are no row numbers
    assert (found.values.tolist(), found.times.begin.tolist()) == (rows.tolist(), [first, first + 1, first + 2])


@pytest.mark.parametrize(
    "text", [",a\n1,5\n1,6\n", ",a\n0.0,5\n2.5,6\n", ",a\n,5\n2,6\n", "n,a\n0,5\n1,6\n", ",.5\n0,5\n1,6\n"]
)
def test_other_columns_are_features(tmp_path, text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(tmp_path, text, holes=True)[-1]) == 2


@pytest.mark.parametrize(
    "first", ["0\n", "0,1,3\n", "1,2,3\n", "0,1,2.5\n", "0.0,1.0,2.0\n", "2,1,0\n", "0,0,1\n", "-0,1,2\n"]
)
def test_other_numbers_are_an_element(tmp_path, first):
    """One column above all: 0 may well be the first of many numbers."""
    row = [float(cell) for cell in first.split(",")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(tmp_path, first + first) == [row, row]


@pytest.mark.parametrize("first", ["0,1", "speed,height", "7,8"])
def test_the_caller_decides(tmp_path, first):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(tmp_path, f"# made today\n{first}\n5,6\n", header=True) == [[5, 6]]
        if first == "speed,height":
            with pytest.raises(ValueError, match="line 1, column 1 is 'speed', not a number"):
                read(tmp_path, f"{first}\n5,6\n", header=False)
        else:
            assert read(tmp_path, f"{first}\n5,6\n", header=False) == [[float(c) for c in first.split(",")], [5, 6]]


def test_one_column_has_a_header_only_if_it_is_said(tmp_path):
    assert read(tmp_path, "0\n1\n2\n") == [[0], [1], [2]]
    assert read(tmp_path, "0\n1\n2\n", header=True) == [[1], [2]]


def test_a_lone_line_of_numbered_columns_is_not_guessed(tmp_path):
    with pytest.raises(ValueError, match=r"its only line is 0,1, which can be column names .*--header or --no-header"):
        read(tmp_path, "0,1\n")
    assert read(tmp_path, "0,1\n", header=False) == [[0, 1]]
    with pytest.raises(ValueError, match="it has no rows"):
        read(tmp_path, "0,1\n", header=True)


def test_other_formats_have_no_header(tmp_path):
    np.save(tmp_path / "a.npy", [[0, 1], [2, 3]])
    for header in (None, True, False):
        assert formats.read(tmp_path / "a.npy", header=header).tolist() == [[0, 1], [2, 3]]
        assert read(tmp_path, "[0, 1]\n[2, 3]\n", "a.jsonl", header=header) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("text", ["1_000", "1_0.5", "1e1_0", "0_1,2_3"])
@pytest.mark.parametrize("line", [1, 2])
def test_digits_with_underscores_are_no_numbers(tmp_path, text, line):
    """In the first line too: taken for names, an element would be lost."""
    rows = [",".join(["1"] * (1 + text.count(",")))] * 2
    rows[line - 1] = text
    with pytest.raises(ValueError, match=rf"line {line}, column 1 is '{text.split(',')[0]}', not a number"):
        read(tmp_path, "\n".join(rows))
    with pytest.raises(ValueError, match="not a number"):
        read(tmp_path, f'[["{text}"]]', "a.json")

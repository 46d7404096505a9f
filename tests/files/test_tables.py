"""Tables with a column of times, and in the encodings and numbers of other countries."""

import numpy as np
import pytest

import dropdtw
from dropdtw.files import formats


def read(folder, text, time="t", encoding="utf-8", **options):
    (folder / "a.csv").write_bytes(text.encode(encoding))
    found = formats.read_table(folder / "a.csv", time=time, **options)
    return found.values, found.times


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        (("0", "0.5", "2"), [0, 0.5, 2]),
        (("0:59", "1:00", "1:00:00.5"), [59, 60, 3600.5]),
        (("2024-05-01T12:00:00", "2024-05-01 12:00:30", "2024-05-02T12:00:00"), [0, 30, 86400]),
        (("2024-05-01T12:00:00Z", "2024-05-01T14:00:01+02:00", "2024-05-01T12:00:02Z"), [0, 1, 2]),
    ],
)
def test_times_are_no_numbers_to_align(tmp_path, cells, seconds):
    text = "".join(f"{k},{cell},{k + 5}\n" for k, cell in enumerate(cells))
    values, times = read(tmp_path, f"a,t,b\n{text}")
    assert values.tolist() == [[0, 5], [1, 6], [2, 7]]
    assert times.seconds[:, 0].tolist() == seconds


def test_semicolons_decimal_commas_and_latin_letters(tmp_path):
    text = "Höhe;Zeit\n1,5;0,25\n2,5;1:00,5\n"
    with pytest.warns(UserWarning, match=r"a\.csv is not UTF-8; it is read as Windows-1252"):
        values, times = read(tmp_path, text, "Zeit", "cp1252")
    assert values.tolist() == [[1.5], [2.5]]
    assert times.seconds[:, 0].tolist() == [0.25, 60.5]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\n1,2\n", r"a\.csv cannot be read as \.csv: it has no column 't'; its columns are a,b"),
        ("1,2\n3,4\n", "it has no column 't'; it begins with numbers"),
        ("a,t\n1,soon\n", r"line 2 has the time 'soon'; give seconds, h:mm:ss, or dates such as"),
        ("a,t\n1,inf\n", "line 2 has the time 'inf'"),
        ("a,t\n1,\n", "line 2 has the time ''"),
        ("a,t\n1\n", "line 2 has the time ''"),
        ("a,t\n1,5\n2,4\n", "line 3 has the time 4, which does not follow that of the line before; sort the rows"),
        ("a,t\n1,5\n2,5\n", "line 3 has the time 5, which does not follow"),
        ("a,t\n1,5\n2,2024-05-01\n", "some of its times are dates and others are not"),
        ("a,t\n1,2024-05-01\n2,2024-05-02T00:00Z\n", "some of its dates have a time zone and others have none"),
        ("t\n1\n", "it has no column besides 't'"),
    ],
)
def test_wrong_times_are_refused_with_the_reason(tmp_path, text, reason):
    with pytest.raises(ValueError, match=reason):
        read(tmp_path, text)


def test_a_column_that_is_not_needed_may_be_missing(tmp_path):
    values, times = read(tmp_path, "a,b\n1,2\n", needed=False)
    assert (values.tolist(), times) == ([[1, 2]], None)
    np.save(tmp_path / "a.npy", [[1.0, 2.0]])
    assert formats.read_table(tmp_path / "a.npy", time="t", needed=False).times is None
    with pytest.raises(ValueError, match=r"a\.npy has no named columns, so none is called 't'"):
        formats.read_table(tmp_path / "a.npy", time="t")


# --- Missing values, and columns by name ------------------------------------------------------------------------


def test_an_empty_cell_is_a_missing_value(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,\n,\n3,4\n")
    np.testing.assert_array_equal(formats.read(tmp_path / "a.csv", holes=True), [[1, np.nan], [np.nan] * 2, [3, 4]])
    with pytest.raises(ValueError, match=r"a\.csv has NaN or infinity in element 0; .*, somehow"):
        formats.read(tmp_path / "a.csv", or_else=", somehow")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("when,a\n2024-05-01,2\n", r"line 2, column 1 \(when\) is '2024-05-01', not a number; pass --time when"),
        ("a,name\n1,boil\n", r"line 2, column 2 \(name\) is 'boil', not a number; leave out the column"),
        ("1,2\n1,boil\n", r"line 2, column 2 is 'boil', not a number; leave out the column"),
        ("a,b\n1,1_000\n", r"line 2, column 2 \(b\) is '1_000', not a number"),
    ],
)
def test_a_column_that_holds_no_numbers_is_named(tmp_path, text, said):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=said):
        formats.read(tmp_path / "a.csv")


def test_columns_are_matched_by_name(tmp_path):
    """A file with permuted columns gives what the file with the same order gives; other names are refused."""
    for name, text in {
        "z.csv": "ax,ay,az\n1,2,3\n4,5,6\n",
        "x.csv": "az,t,ax,ay\n3,0,1,2\n6,1,4,5\n",
        "other.csv": "ax,ay,gz\n1,2,3\n",
        "plain.csv": "3,1,2\n",
        "one.csv": "speed\n1\n",
        "two.csv": "pace\n1\n",
    }.items():
        (tmp_path / name).write_text(text)
    Z, X, times = formats.read_pair(tmp_path / "z.csv", tmp_path / "x.csv", time="t")
    assert (X.tolist(), times.x.begin.tolist()) == (Z.tolist(), [0, 1])
    assert formats.read_pair(tmp_path / "z.csv", tmp_path / "plain.csv").X.tolist() == [[3, 1, 2]]
    assert formats.read_pair(tmp_path / "one.csv", tmp_path / "two.csv").X.tolist() == [[1]]
    with pytest.raises(ValueError, match=r"z\.csv has the columns ax,ay,az and .*other\.csv has ax,ay,gz; give both"):
        formats.read_pair(tmp_path / "z.csv", tmp_path / "other.csv")


def test_data_frames_are_matched_by_column():
    pandas = pytest.importorskip("pandas")
    Z = pandas.DataFrame({"ax": [1.0, 2.0], "ay": [0.0, 5.0], "az": [9.0, 9.0]})
    X = Z[["az", "ax", "ay"]]
    assert dropdtw.align(Z, X, 0.1, match="euclidean").cost == 0
    assert dropdtw.distance(Z, X, match="euclidean") == 0
    assert dropdtw.suggest_drop(Z, X, match="euclidean") == dropdtw.suggest_drop(Z, Z, match="euclidean")
    with pytest.raises(ValueError, match="Z has the columns ax,ay,az and X has az,ax,other; give both the same"):
        dropdtw.align(Z, X.rename(columns={"ay": "other"}), 0.1)

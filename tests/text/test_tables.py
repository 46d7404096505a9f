"""Talks in tables."""

import pytest

from dropdtw.text import Sentence, read_table


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_rows_are_what_is_said(mark):
    lines = (("end", "Text", "start"), ("3", '"Boil, or steam"', "1"), ("9", "Pour", "0:08.5"))
    assert read_table("\n".join(map(mark.join, lines))) == [
        Sentence(1, 3, "Boil, or steam"),
        Sentence(8.5, 9, "Pour"),
    ]


def test_rows_without_an_end_last_until_the_next():
    said = read_table("time,text\n7,third\n1,first\n,\n4,\n5,second\n")
    assert said == [Sentence(1, 5, "first"), Sentence(5, 7, "second"), Sentence(7, 10, "third")]
    assert read_table("time,text\n7,alone\n") == [Sentence(7, 7, "alone")]


def test_the_column_of_times_can_be_named():
    assert read_table("When;start;text\n2,5;99;Go\n", time="When") == [Sentence(2.5, 2.5, "Go")]


def test_whisper_counts_milliseconds():
    assert read_table("start\tend\ttext\n1500\t2500\tHello\n") == [Sentence(1.5, 2.5, "Hello")]
    assert read_table("start,end,text\n1500,2500,Hello\n") == [Sentence(1500, 2500, "Hello")]


@pytest.mark.parametrize(
    ("content", "time", "reason"),
    [
        ("", None, "the table has no sentences"),
        ("start,text\n", None, "the table has no sentences"),
        ("start,words\n1,a\n", None, "no column of texts among start, words; rename the"),
        ("when,text\n1,a\n", None, "there is no column of times among when, text; name it with time="),
        ("start,text\n1,a\n", "when", "there is no column of times among start, text; name it with time="),
        ("start,text\n1,a\nsoon,b\n", None, "row 2 has the time 'soon'; give seconds or h:mm:ss"),
        ("start,text\nnan,a\n", None, "row 1 has the time 'nan'"),
        ("start,text\n1,\n", None, "the table has no sentences"),
    ],
)
def test_wrong_tables_are_refused_with_the_reason(content, time, reason):
    with pytest.raises(ValueError, match=reason):
        read_table(content, time)

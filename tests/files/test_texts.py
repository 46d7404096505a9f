"""Texts in the encodings that people use."""

import warnings

import pytest

from dropdtw.files import formats
from dropdtw.files.texts import decoded

TEXT = "Öl erhitzen – drei Minuten"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_texts_that_say_what_they_are_are_read_without_a_word(encoding):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decoded(TEXT.encode(encoding), "a.txt") == TEXT


def test_other_texts_are_read_as_windows_writes_them_with_a_warning():
    with pytest.warns(UserWarning, match=r"a\.txt is not UTF-8; it is read as Windows-1252"):
        assert decoded(TEXT.encode("cp1252"), "a.txt") == TEXT


@pytest.mark.parametrize("content", [b"\x93NUMPY\x01\x00\xff", b"\xff\xfea\x00b"])
def test_what_is_no_text_is_refused(content):
    with pytest.raises(ValueError, match=r"a\.npy is not a text file; give one that is saved as UTF-8"):
        decoded(content, "a.npy")


def test_a_recording_is_told_where_it_belongs(tmp_path):
    (tmp_path / "talk.mp4").write_bytes(b"\0\xff" * 9)
    with pytest.raises(ValueError, match=r"is not a text file.*its subtitles, which `whisper .*talk\.mp4` writes"):
        decoded((tmp_path / "talk.mp4").read_bytes(), "talk.mp4")
    with pytest.raises(ValueError, match=r"ends in '\.mp4'; sequences are read from .*; `dropdtw diff` compares rec"):
        formats.read(tmp_path / "talk.mp4")

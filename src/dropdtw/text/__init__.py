"""Find where subtitles talk about each step of a procedure, and write chapters (`pip install dropdtw[text]`)."""

from dropdtw.text.chapters import FORMATS, write_chapters
from dropdtw.text.localize import FoundStep, localize
from dropdtw.text.steps import read_steps
from dropdtw.text.subtitles import Sentence, read_subtitles, sentences
from dropdtw.text.tables import read_table

__all__ = [
    "FORMATS",
    "FoundStep",
    "Sentence",
    "localize",
    "read_steps",
    "read_subtitles",
    "read_table",
    "sentences",
    "write_chapters",
]

"""Find where subtitles talk about each step of a procedure, and write chapters (`pip install 'dropdtw[text]'`).

- `read_steps` reads the steps. `read_subtitles` and `read_table` read a talk, and `sentences` divides it into
  sentences; `sentences_of_words` does so with single words.
- `find_steps` finds the steps and returns one `FoundStep` for each; for a missing one, with its `Closest` place.
- `write_chapters` writes them in one of the `FORMATS`.

>>> from dropdtw import text
>>> steps = text.read_steps("1. Boil the water\\n2. Put the tea leaves into the pot")
>>> talk = [text.Sentence(0, 3, "Welcome to my channel."), text.Sentence(3, 7, "First we boil water in a kettle."),
...         text.Sentence(7, 9, "My dog is called Rex."), text.Sentence(9, 14, "The tea leaves go into the pot.")]
>>> found = text.find_steps(steps, [s.text for s in talk], [(s.start, s.stop) for s in talk])
>>> [(f.step, f.start, f.stop) for f in found]
[('Boil the water', 3.0, 7.0), ('Put the tea leaves into the pot', 9.0, 14.0)]
"""

from dropdtw.text.chapters import FORMATS, write_chapters
from dropdtw.text.find import Closest, FoundStep, find_steps
from dropdtw.text.steps import read_steps
from dropdtw.text.subtitles import Sentence, read_subtitles, sentences, sentences_of_words
from dropdtw.text.tables import read_table

__all__ = [
    "FORMATS",
    "Closest",
    "FoundStep",
    "Sentence",
    "find_steps",
    "read_steps",
    "read_subtitles",
    "read_table",
    "sentences",
    "sentences_of_words",
    "write_chapters",
]

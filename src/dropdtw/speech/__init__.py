"""Speech: align a text with the frames of a recording that a CTC model has scored. It needs NumPy only.

- `align` finds each token and each word. The text need not cover the recording: words may be left unspoken, and speech
  may be missing from the text.
- `SpeechAlignment` is its result, with a list of `Word`s, each with its `Token`s.
- `write_alignment` writes it in one of the `FORMATS`: SubRip, WebVTT, Praat TextGrid, CTM or JSON.

Or align it with the words that a recognizer heard:

- `sync` finds when each sentence of a text is read aloud, and returns a `Reading`; `write_reading` writes it.
- `read_transcript` reads the words that recognizers write, and `transcribe` lets one write them.

In training, use `dropdtw.torch.CTCLoss`; for batches on a GPU, `dropdtw.torch.forced_align`.
"""

from dropdtw.speech.align import SpeechAlignment, Token, Word, align
from dropdtw.speech.readalong import READING_FORMATS, Page, write_reading
from dropdtw.speech.reading import ExtraSpeech, Reading, ReadSentence, ReadWord, sync
from dropdtw.speech.transcripts import SpokenWord, Transcript, read_transcript, transcribe
from dropdtw.speech.write import FORMATS, write_alignment

__all__ = [
    "FORMATS",
    "READING_FORMATS",
    "ExtraSpeech",
    "Page",
    "ReadSentence",
    "ReadWord",
    "Reading",
    "SpeechAlignment",
    "SpokenWord",
    "Token",
    "Transcript",
    "Word",
    "align",
    "read_transcript",
    "sync",
    "transcribe",
    "write_alignment",
    "write_reading",
]

"""GRID talking faces (Cooke et al. 2006): short sentences of one speaker as lip landmarks and log-mel spectrograms.

Read from one file, `grid_s1_lips_logmel.npz`: `lips` (n, 75, 40, 2), landmarks around the mouth at 25 frames per
second; `logmel` (n, 150, 40), two columns of the spectrogram per frame; `words` (n, 8) and `word_frames` (n, 8, 2),
[start, stop) of each word, silences included; `name` (n,).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from dropdtw.files import atomic
from dropdtw.problem.inputs import Array
from reproduction.data.records import wrong

FILE: Final = "grid_s1_lips_logmel.npz"
SILENCE: Final = ("sil", "sp")


@dataclass(frozen=True, eq=False)
class Clips:
    """Sentences in two streams of the same T frames.

    lips : (n, T, 80).   sound : (n, T, 80), two log-mel columns per frame.
    words : for each sentence (word, start, stop), frames [start, stop), without the silences.
    """

    names: tuple[str, ...]
    lips: Array
    sound: Array
    words: tuple[tuple[tuple[str, int, int], ...], ...]

    def __len__(self) -> int:
        return len(self.names)

    def only(self, which: Array) -> Clips:
        """A subset of the sentences."""
        chosen = [int(k) for k in which]
        names, words = (tuple(part[k] for k in chosen) for part in (self.names, self.words))
        return Clips(names, self.lips[chosen], self.sound[chosen], words)  # type: ignore[arg-type]


def load(place: str | os.PathLike[str]) -> Clips:
    """All sentences in file order, except those with a frame in which the face was lost (NaN)."""
    path = Path(place)
    path = path if path.suffix == ".npz" else path / FILE
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; give the folder with {FILE}")
    stored = atomic.read_arrays(path)
    try:
        lips, sound = stored["lips"].astype(np.float32), stored["logmel"].astype(np.float32)
        n, T = lips.shape[:2]
        if sound.shape[:2] != (n, 2 * T):
            raise ValueError(f"lips are {lips.shape} and logmel {sound.shape}; expected two columns of sound per frame")
        words = tuple(
            tuple(
                (str(word), int(start), min(int(stop), T))
                for word, (start, stop) in zip(row, spans, strict=True)
                if str(word) not in SILENCE and 0 <= start < min(stop, T)
            )
            for row, spans in zip(stored["words"], stored["word_frames"], strict=True)
        )
        names = tuple(str(name) for name in stored["name"])
        if not n == len(words) == len(names):
            raise ValueError(f"{n} clips have {len(words)} lists of words and {len(names)} names")
        whole = np.isfinite(lips).all(axis=(1, 2, 3)) & np.isfinite(sound).all(axis=(1, 2))
        found = Clips(names, lips.reshape(n, T, -1), sound.reshape(n, T, -1), words)
        return found if whole.all() else found.only(np.flatnonzero(whole))
    except (KeyError, ValueError) as error:
        raise wrong(path, "see the documentation of reproduction.data.grid", error) from None


def with_context(stream: Array, reach: int) -> Array:
    """(…, T, d) → (…, T, (2 · reach + 1) · d): each frame with its neighbors; the end frames repeat."""
    T = stream.shape[-2]
    at = np.clip(np.arange(T)[:, None] + np.arange(-reach, reach + 1), 0, T - 1)
    windows = stream[..., at, :]
    return np.asarray(windows.reshape(*windows.shape[:-2], -1))

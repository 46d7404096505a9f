"""Synthetic sounds for benchmarks/diff.py: speech, music, both, and noise.

espeak-ng speaks the speech. Music is generated here as MIDI and rendered by fluidsynth. Both are separate programs
(Debian packages of the same names).
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

Array = np.ndarray
Rng = np.random.Generator

RATE = 22050
SOUNDFONTS = [Path("/usr/share/sounds/sf2", name) for name in ("FluidR3_GM.sf2", "TimGM6mb.sf2", "default-GM.sf2")]
"""Where Debian keeps soundfonts (fluid-soundfont-gm, timgm6mb-soundfont); the first that is there is used."""
LOUDNESS = 0.1

# --- Speech -------------------------------------------------------------------------------------------------------

WORDS = {
    "en": "harbour ticket morning silver kettle answer carpet engine thunder pocket ladder onion velvet market doctor "
    "window seven garden paper quiet bring follow carry open before under little heavy early never again because",
    "de": "Hafen Karte Morgen Silber Kessel Antwort Teppich Motor Donner Tasche Leiter Zwiebel Samt Markt Fenster "
    "sieben Garten Papier leise bringen folgen tragen öffnen vorher unter klein schwer früh niemals wieder weil",
    "fr": "port billet matin argent bouilloire réponse tapis moteur tonnerre poche échelle oignon velours marché "
    "fenêtre sept jardin papier calme apporter suivre porter ouvrir avant sous petit lourd tôt jamais encore",
    "es": "puerto billete mañana plata tetera respuesta alfombra motor trueno bolsillo escalera cebolla mercado "
    "ventana siete jardín papel tranquilo traer seguir llevar abrir antes debajo pequeño pesado temprano nunca",
}
VARIANTS = ("", "+f2", "+f4", "+m1", "+m3", "+m7")


class Speaker(NamedTuple):
    """A voice of espeak-ng."""

    language: str
    variant: str
    pitch: int
    speed: int

    @classmethod
    def any(cls, rng: Rng) -> Speaker:
        """A speaker drawn at random."""
        language = str(rng.choice(list(WORDS)))
        return cls(language, str(rng.choice(VARIANTS)), int(rng.integers(30, 70)), int(rng.integers(140, 195)))

    def say(self, text: str) -> Array:
        """The text, spoken."""
        command = ["espeak-ng", "-v", self.language + self.variant, "-p", str(self.pitch), "-s", str(self.speed)]
        wav = subprocess.run([*command, "--stdout"], input=text.encode(), capture_output=True, check=True).stdout
        return np.frombuffer(wav[44 : len(wav) // 2 * 2], np.int16).astype(np.float32) / 32768


def speech(rng: Rng, seconds: float, cast: list[Speaker] | None = None) -> Array:
    """A conversation of random sentences among three voices."""
    voices = cast or [Speaker.any(rng) for _ in range(3)]

    def turn(left: float) -> Array:
        speaker = voices[rng.integers(len(voices))]
        words = WORDS[speaker.language].split()
        sentences = [
            " ".join(rng.choice(words, rng.integers(4, 11)))
            + (f" {rng.integers(2, 9999)}" if rng.random() < 0.3 else "")
            for _ in range(rng.integers(2, 8))
        ]
        return speaker.say(". ".join(sentences) + ".")

    return level(fill(seconds, turn))


# --- Music --------------------------------------------------------------------------------------------------------

BEAT = 480
SCALES = ([0, 2, 4, 5, 7, 9, 11], [0, 2, 3, 5, 7, 8, 10], [0, 2, 3, 5, 7, 9, 10], [0, 2, 4, 5, 7, 9, 10])
LEADS, PADS, BASSES = (0, 4, 11, 24, 40, 56, 65, 73, 80), (0, 16, 19, 48, 50, 61, 89), (32, 33, 34, 38, 43)


class Style(NamedTuple):
    """How a tune is played: beats per minute, drums, how chords are laid out, how much a player varies."""

    tempo: tuple[int, int]
    drums: tuple[int, ...]
    chords: str
    vary: int


STYLES = {
    "pop": Style((95, 130), (36, 42, 38, 42), "held", 14),
    "ballad": Style((60, 85), (), "broken", 16),
    "dance": Style((118, 138), (36, 46, 36, 46), "stabs", 6),
    "chamber": Style((70, 120), (), "held", 18),
    "rock": Style((100, 150), (36, 42, 40, 42), "stabs", 12),
}


class Score:
    """Notes of a tune, as MIDI events."""

    def __init__(self, rng: Rng, vary: int) -> None:
        self.rng, self.vary = rng, vary
        self.events: list[tuple[int, int, int, int]] = []

    def note(self, channel: int, key: int, at: float, length: float, loud: int) -> None:
        """A note, a little early or late, louder or softer, as players are."""
        start = max(0, int(at + self.rng.integers(-self.vary, self.vary + 1) // 2))
        velocity = int(np.clip(loud + self.rng.integers(-self.vary, self.vary + 1), 20, 120))
        self.events.append((start, 0x90 | channel, int(np.clip(key, 20, 108)), velocity))
        self.events.append((start + max(30, int(length)), 0x80 | channel, int(np.clip(key, 20, 108)), 0))

    def midi(self, tempo: int, programs: list[int]) -> bytes:
        """The file."""
        body = b"\0\xff\x51\x03" + struct.pack(">I", int(6e7 / tempo))[1:]
        body += b"".join(bytes([0, 0xC0 | channel, program]) for channel, program in enumerate(programs))
        last = 0
        for at, *message in sorted(self.events):
            body += _variable(at - last) + bytes(message)
            last = at
        body += b"\0\xff\x2f\0"
        return b"MThd" + struct.pack(">IHHH", 6, 0, 1, BEAT) + b"MTrk" + struct.pack(">I", len(body)) + body


def _variable(n: int) -> bytes:
    """A number in MIDI's variable length."""
    out = [n & 127]
    while n := n >> 7:
        out.append(n & 127 | 128)
    return bytes(reversed(out))


def tune(rng: Rng, seconds: float) -> bytes:
    """A tune with a form: phrases of four bars over chords, most of which come back, as in songs."""
    style = STYLES[str(rng.choice(list(STYLES)))]
    tempo, root, scale = int(rng.integers(*style.tempo)), int(rng.integers(46, 60)), SCALES[rng.integers(4)]
    score = Score(rng, style.vary)

    def pitch(degree: int) -> int:
        return root + 12 * (degree // 7) + scale[degree % 7]

    def phrase() -> list[tuple[int, int]]:
        steps = np.cumsum(rng.integers(-3, 4, 16)) % 12
        lengths = rng.choice([BEAT // 2, BEAT, BEAT, 2 * BEAT], 16)
        return [(int(s), int(n)) for s, n in zip(steps, lengths, strict=True)]

    phrases = [phrase() for _ in range(3)]
    chords = [[0, *rng.choice(7, 3)] for _ in range(2)]
    form = rng.choice([0, 0, 1, 2], int(seconds * tempo / 60 / 16) + 2)  # the first comes back most often
    for part, which in enumerate(form):
        start = part * 16 * BEAT
        at = 0
        for degree, length in phrases[which]:
            if at + length <= 16 * BEAT and rng.random() < 0.95:
                score.note(0, pitch(degree + 7), start + at, 0.9 * length, 92)
            at += length
        for beat in range(16):
            degree, now = int(chords[which % 2][beat // 4]), start + beat * BEAT
            _chord(score, style.chords, beat, [pitch(degree + s) for s in (0, 2, 4)], now)
            if beat % 2 == 0 or style.drums:
                score.note(2, pitch(degree) - 24, now, 0.6 * BEAT, 82)
            if style.drums:
                score.note(9, style.drums[beat % 4], now, 100, 78)
    return score.midi(tempo, [int(rng.choice(some)) for some in (LEADS, PADS, BASSES)])


def _chord(score: Score, layout: str, beat: int, keys: list[int], now: int) -> None:
    if layout == "broken":
        for k in (0, 1):
            score.note(1, keys[(2 * beat + k) % 3], now + k * BEAT // 2, BEAT / 2, 62)
    elif layout == "stabs" or beat % 4 == 0:
        for key in keys:
            score.note(1, key, now, BEAT / 3 if layout == "stabs" else 3.9 * BEAT, 60)


def soundfont() -> Path | None:
    """The soundfont that music is rendered with; None where there is none."""
    return next((file for file in SOUNDFONTS if file.exists()), None)


def render(midi: bytes) -> Array:
    """The sound of a MIDI file."""
    font = soundfont()
    if font is None:
        raise FileNotFoundError(
            f"no soundfont at {', '.join(map(str, SOUNDFONTS))}; install one, or speech alone works"
        )
    with tempfile.TemporaryDirectory() as folder:
        file, raw = Path(folder, "tune.mid"), Path(folder, "tune.raw")
        file.write_bytes(midi)
        command = ["fluidsynth", "-ni", "-q", "-F", str(raw), "-T", "raw", "-O", "s16", "-r", str(RATE), str(font)]
        subprocess.run([*command, str(file)], capture_output=True, check=True)
        x = np.fromfile(raw, np.int16).reshape(-1, 2).mean(axis=1).astype(np.float32) / 32768
    heard = np.flatnonzero(np.abs(x) > 0.01 * np.abs(x).max())  # without the seconds in which the last note dies away
    return x[: heard[-1] + 1] if len(heard) else x


def music(rng: Rng, seconds: float) -> Array:
    """Tunes one after the other."""

    def song(left: float) -> Array:
        return level(render(tune(rng, min(float(rng.uniform(40, 120)), left))))

    return fill(seconds, song)


# --- Other sounds -------------------------------------------------------------------------------------------------


def mixed(rng: Rng, seconds: float, cast: list[Speaker] | None = None) -> Array:
    """Speech, music, and speech over music, in turns."""
    voices = cast or [Speaker.any(rng) for _ in range(3)]

    def part(left: float) -> Array:
        length, how = min(float(rng.uniform(15, 60)), left), rng.integers(3)
        if how == 0:
            return speech(rng, length, voices)
        if how == 1:
            return music(rng, length)
        return level(speech(rng, length, voices) + 0.3 * music(rng, length))

    return fill(seconds, part)


def noise(rng: Rng, seconds: float) -> Array:
    """Gusts: noise whose loudness and color wander, a few times a second."""
    n = int(seconds * RATE)
    at = np.linspace(0, seconds, n)
    out = np.zeros(n, np.float32)
    for low, high in ((100, 400), (400, 1200), (1200, 3000), (3000, 7000)):
        knots = np.arange(0, seconds + 1, 0.25)
        gust = np.interp(at, knots, np.exp(rng.normal(0, 1.0, len(knots))))
        out += (band_noise(rng, n, low, high) * gust).astype(np.float32)
    return level(out)


def band_noise(rng: Rng, n: int, low: float, high: float) -> Array:
    """Noise between two frequencies."""
    size = 1 << int(np.ceil(np.log2(max(n, 2))))
    spectrum = np.fft.rfft(rng.normal(size=size))
    f = np.fft.rfftfreq(size, 1 / RATE)
    spectrum[(f < low) | (f > high)] = 0
    return np.fft.irfft(spectrum)[:n]


def level(x: Array) -> Array:
    """The sound at a usual loudness."""
    return (LOUDNESS * x / (x.std() + 1e-9)).astype(np.float32)


def fill(seconds: float, piece: Callable[[float], Array]) -> Array:
    """Pieces one after the other, cut to a length; each learns how many seconds are left."""
    parts, length = [], 0
    while length < seconds * RATE:
        parts.append(piece(max(1.0, seconds - length / RATE)))
        length += len(parts[-1])
    return np.concatenate(parts)[: int(seconds * RATE)]


MATERIAL: dict[str, Callable[..., Array]] = {"speech": speech, "mixed": mixed, "music": music, "noise": noise}

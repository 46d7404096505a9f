"""Made recordings with known edits, for benchmarks/diff.py: speech, music, both, noise; and what copies go through.

Speech is spoken by espeak-ng, music is written here as MIDI and rendered by fluidsynth; both are programs of their own
(Debian packages of the same names). Codecs and resampling go through PyAV.
"""

from __future__ import annotations

import io
import os
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np

Array = np.ndarray
Rng = np.random.Generator

RATE = 22050
SOUNDFONTS = [Path("/usr/share/sounds/sf2", name) for name in ("FluidR3_GM.sf2", "TimGM6mb.sf2", "default-GM.sf2")]
"""Where Debian keeps soundfonts (fluid-soundfont-gm, timgm6mb-soundfont); the first that is there is used."""
LOUDNESS = 0.1
LEAST = 5.0
"""Seconds that edits and shared passages last at least."""

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

# --- Pairs with known edits ---------------------------------------------------------------------------------------

Edit = tuple[float, float, float, float]


class Pair(NamedTuple):
    """Two recordings and what was edited: (start, stop) in A and (start, stop) in B, seconds."""

    a: Array
    b: Array
    edits: list[Edit]


def pair(kind: str, seed: int, seconds: float = 180.0) -> Pair:
    """A recording edited twice: passages inserted, replaced, or left out of one of the two.

    Seeds 2k and 2k + 1 share their voices but no passage.
    """
    rng, voices = np.random.default_rng([seed, 1]), np.random.default_rng([seed // 2, 2])
    cast = {"cast": [Speaker.any(voices) for _ in range(3)]} if kind in ("speech", "mixed") else {}
    make = MATERIAL[kind]
    base = make(rng, seconds, **cast)
    count = int(rng.integers(2, 6))
    room = seconds - (count + 1) * LEAST
    cuts = np.sort(rng.uniform(0, room, count)) + LEAST * np.arange(1, count + 1)
    A: list[Array] = []
    B: list[Array] = []
    edits, pos = [], 0
    for k, cut in enumerate(cuts):
        until = int(cut * RATE)
        if until < pos + LEAST * RATE:  # the passage before was left out up to here
            continue
        ahead = (cuts[k + 1] if k + 1 < count else seconds) - cut
        shared, how = base[pos:until], int(rng.integers(5))
        a = b = base[:0]
        pos = until
        if how > 2 and ahead > 2 * LEAST:
            gone = base[until : until + int(rng.uniform(LEAST, min(30, ahead - LEAST)) * RATE)]
            pos += len(gone)
            a, b = (gone, b) if how == 3 else (a, gone)
        else:
            a = a if how == 1 else make(rng, rng.uniform(LEAST, 30), **cast)
            b = b if how == 0 else make(rng, rng.uniform(LEAST, 30), **cast)
        la, lb = (sum(map(len, x)) + len(shared) for x in (A, B))
        edits.append(tuple(n / RATE for n in (la, la + len(a), lb, lb + len(b))))
        A += [shared, a]
        B += [shared, b]
    return Pair(np.concatenate([*A, base[pos:]]), np.concatenate([*B, base[pos:]]), edits)


# --- What copies go through ---------------------------------------------------------------------------------------

CODECS = {"mp3": ("mp3", "libmp3lame", 22050), "ogg": ("ogg", "libopus", 24000)}
CONDITIONS = ("gain", "noise20", "noise10", "mp3", "ogg", "resample", "noise20 mp3", "speed+1", "speed-1")
"""In turns, by seed; a gain comes with each of them."""


class Copy(NamedTuple):
    """A copy of a recording: its samples, their rate, and how many seconds of the original one second holds."""

    samples: Array
    rate: int
    speed: float


def spoil(x: Array, how: str, rng: Rng) -> Copy:
    """The recording as another copy of it might be."""
    x = (x * 10 ** (rng.uniform(-12, 6) / 20)).astype(np.float32)
    rate, speed = RATE, 1.0
    for step in how.split():
        if step.startswith("noise"):
            hiss = rng.normal(size=len(x)) if rng.random() < 0.5 else pink(rng, len(x))
            x = (x + hiss * x.std() / hiss.std() * 10 ** (-int(step[5:]) / 20)).astype(np.float32)
        elif step in CODECS:
            x, rate = through(x, rate, step)
        elif step == "resample":
            to = int(rng.choice([16000, 44100, 48000]))
            x, rate = resampled(x, rate, to), to
        elif step.startswith("speed"):
            speed = 1 + int(step[5:]) / 100
            rate = round(rate * speed)
    return Copy(x, rate, speed)


def pink(rng: Rng, n: int) -> Array:
    """Noise with less power at high frequencies."""
    size = 1 << int(np.ceil(np.log2(max(n, 2))))
    return np.fft.irfft(np.fft.rfft(rng.normal(size=size)) / np.sqrt(np.arange(size // 2 + 1) + 20))[:n]


def frames(x: Array, rate: int, size: int = 1 << 14) -> Iterator[Any]:
    """Samples as PyAV has them."""
    for start in range(0, len(x), size):
        whole = np.clip(32768 * x[start : start + size], -32768, 32767).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(whole[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts = rate, start
        yield frame


def encoded(x: Array, rate: int, codec: str, bits: int = 32_000) -> bytes:
    """The sound as a file of a lossy codec."""
    container, name, at = CODECS[codec]
    out = io.BytesIO()
    with av.open(out, "w", format=container) as file:
        stream = file.add_stream(name, rate=at, layout="mono")
        stream.bit_rate = bits
        resampler = av.AudioResampler(format=stream.format, layout="mono", rate=at, frame_size=stream.frame_size)
        for frame in frames(x, rate):
            for part in resampler.resample(frame):
                file.mux(stream.encode(part))
        for part in resampler.resample(None):
            file.mux(stream.encode(part))
        file.mux(stream.encode(None))
    return out.getvalue()


def through(x: Array, rate: int, codec: str) -> tuple[Array, int]:
    """The sound after a lossy codec, and its rate."""
    with av.open(io.BytesIO(encoded(x, rate, codec))) as file:
        decoded = [(frame.to_ndarray().mean(axis=0), frame.sample_rate) for frame in file.decode(audio=0)]
    return np.concatenate([part for part, _ in decoded]).astype(np.float32), decoded[0][1]


def resampled(x: Array, rate: int, to: int) -> Array:
    """The sound at another rate."""
    resampler = av.AudioResampler(format="flt", layout="mono", rate=to)
    parts = [part.to_ndarray()[0] for frame in [*frames(x, rate), None] for part in resampler.resample(frame)]
    return np.concatenate(parts).astype(np.float32)


# --- Kept on disk -------------------------------------------------------------------------------------------------


class Made(NamedTuple):
    """A pair as it is measured: A, the copy of B, the true edits in seconds of each, and what B went through."""

    a: Array
    b: Array
    rate_b: int
    edits: list[Edit]
    how: str
    speed: float


def made(kind: str, seed: int, cache: Path | None = None) -> Made:
    """The pair of a seed with its condition; kept in `cache` where there is one."""
    how = CONDITIONS[seed % len(CONDITIONS)]
    file = None if cache is None else cache / f"{kind}-{seed}.npz"
    if file is None or not file.exists():
        a, b, edits = pair(kind, seed)
        b, rate, speed = spoil(b, how, np.random.default_rng([seed, 3]))
        edits = [(a0, a1, b0 / speed, b1 / speed) for a0, a1, b0, b1 in edits]
        if file is None:
            return Made(a, b, rate, edits, how, speed)
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        whole = [np.clip(16384 * x, -32768, 32767).astype(np.int16) for x in (a, b)]
        with part.open("wb") as out:
            np.savez(out, a=whole[0], b=whole[1], rate=rate, edits=np.array(edits).reshape(-1, 4), speed=speed)
        part.rename(file)
    with np.load(file) as kept:
        a, b = (kept[name].astype(np.float32) / 16384 for name in ("a", "b"))
        edits = [tuple(map(float, edit)) for edit in kept["edits"]]
        return Made(a, b, int(kept["rate"]), edits, how, float(kept["speed"]))

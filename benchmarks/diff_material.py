"""Made recordings with known edits, for benchmarks/diff.py, and what copies of them go through.

`diff_sounds` makes the sounds. Codecs and resampling go through PyAV.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np
from diff_sounds import MATERIAL, RATE, Array, Rng, Speaker

LEAST = 5.0
"""Seconds that edits and shared passages last at least."""

# --- Pairs with known edits ---------------------------------------------------------------------------------------

Edit = tuple[float, float, float, float]


class Pair(NamedTuple):
    """Two recordings and what was edited: (start, stop) in A and (start, stop) in B, seconds."""

    a: Array
    b: Array
    edits: list[Edit]


def pair(kind: str, seed: int, seconds: float = 180.0, least: float = LEAST, edits: tuple[int, int] = (2, 5)) -> Pair:
    """A recording edited twice: passages inserted, replaced, or left out of one of the two.

    least : seconds that edits and shared passages last at least.   edits : the fewest and the most of them.
    Seeds 2k and 2k + 1 share their voices but no passage.
    """
    rng, voices = np.random.default_rng([seed, 1]), np.random.default_rng([seed // 2, 2])
    cast = {"cast": [Speaker.any(voices) for _ in range(3)]} if kind in ("speech", "mixed") else {}
    make = MATERIAL[kind]
    base = make(rng, seconds, **cast)
    count = int(rng.integers(edits[0], edits[1] + 1))
    room = seconds - (count + 1) * least
    cuts = np.sort(rng.uniform(0, room, count)) + least * np.arange(1, count + 1)
    A: list[Array] = []
    B: list[Array] = []
    found: list[Edit] = []
    pos = 0
    for k, cut in enumerate(cuts):
        until = int(cut * RATE)
        if until < pos + least * RATE:  # the passage before was left out up to here
            continue
        ahead = (cuts[k + 1] if k + 1 < count else seconds) - cut
        shared, how = base[pos:until], int(rng.integers(5))
        a = b = base[:0]
        pos = until
        if how > 2 and ahead > 2 * least:
            gone = base[until : until + int(rng.uniform(least, min(30, ahead - least)) * RATE)]
            pos += len(gone)
            a, b = (gone, b) if how == 3 else (a, gone)
        else:
            a = a if how == 1 else make(rng, rng.uniform(LEAST, 30), **cast)
            b = b if how == 0 else make(rng, rng.uniform(LEAST, 30), **cast)
        la, lb = (sum(map(len, x)) + len(shared) for x in (A, B))
        found.append((la / RATE, (la + len(a)) / RATE, lb / RATE, (lb + len(b)) / RATE))
        A += [shared, a]
        B += [shared, b]
    return Pair(np.concatenate([*A, base[pos:]]), np.concatenate([*B, base[pos:]]), found)


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


def spoilt(pair: Pair, seed: int) -> Made:
    """The pair with the condition of its seed."""
    how = CONDITIONS[seed % len(CONDITIONS)]
    b, rate, speed = spoil(pair.b, how, np.random.default_rng([seed, 3]))
    edits = [(a0, a1, b0 / speed, b1 / speed) for a0, a1, b0, b1 in pair.edits]
    return Made(pair.a, b, rate, edits, how, speed)


def made(kind: str, seed: int, cache: Path | None = None) -> Made:
    """The pair of a seed with its condition; kept in `cache` where there is one."""
    how = CONDITIONS[seed % len(CONDITIONS)]
    file = None if cache is None else cache / f"{kind}-{seed}.npz"
    if file is None or not file.exists():
        a, b, rate, edits, _, speed = spoilt(pair(kind, seed), seed)
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

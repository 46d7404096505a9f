"""Sound in any common format, read block by block with PyAV: mono, 16,000 samples per second."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from numbers import Integral
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from dropdtw.problem.inputs import Array

RATE = 16_000
"""Samples per second after decoding."""

GAP = 0.1
"""Minimum jump in the time stamps, in seconds, that is filled with silence."""

LONGEST_GAP = 3600.0
"""Maximum jump in the time stamps, in seconds, that counts as a pause; a larger one counts as damage."""

MISSING = 1.0
"""Minimum number of seconds that a file lacks of what its header says before that counts as damage."""

UNKNOWN_SIZE = 0x7FFF0000
"""From this number of bytes on, the size in a WAV header is a placeholder."""

BLOCK = 1 << 16
"""Samples in a block, before resampling."""

Source = str | os.PathLike[str] | tuple[npt.ArrayLike, int]
"""A file, or samples with their rate."""


class Sound:
    """A recording, read once, block by block.

    source : the path of a file with a sound track, or (samples, rate): samples (n,) or (n, channels), floats or
        16-bit integers.
    name : its name in messages.

    After reading, `seconds` is its duration, and `notes` lists errors that did not stop the reading.
    """

    def __init__(self, source: Source, name: str) -> None:
        self.name = name
        self.notes: list[str] = []
        self._samples = 0
        self._blocks = self._of_samples(*source) if isinstance(source, tuple) else self._of_file(source)

    @property
    def seconds(self) -> float:
        """The duration read so far."""
        return self._samples / RATE

    def blocks(self) -> Iterator[Array]:
        """Yield samples (n,), float32, block by block."""
        for block in self._blocks:
            self._samples += len(block)
            yield block

    def _of_samples(self, given: npt.ArrayLike, rate: int) -> Iterator[Array]:
        samples = np.asarray(given)
        if samples.dtype.kind not in "iuf" or samples.ndim not in (1, 2) or 0 in samples.shape[1:]:
            raise ValueError(
                f"{self.name} has samples of type {samples.dtype} and shape {samples.shape}; "
                "give numbers of shape (n,) or (n, channels)"
            )
        if isinstance(rate, bool) or not isinstance(rate, Integral) or not 1000 <= rate <= 1_000_000:
            raise ValueError(
                f"{self.name} has a rate of {rate!r}; give samples per second, an int from 1000 to 1000000"
            )
        if samples.dtype.kind == "f" and not np.isfinite(samples).all():
            raise ValueError(
                f"{self.name} has samples that are NaN or infinite; replace them, for example with 0 (silence)"
            )
        scale = 1.0 if samples.dtype.kind == "f" else 1.0 / float(np.iinfo(samples.dtype).max)
        queue, resampler = (None, None) if rate == RATE else (load_av().AudioFifo(), _resampler())
        for start in range(0, len(samples), BLOCK):
            block = (samples[start : start + BLOCK] * scale).astype(np.float32)
            block = block if block.ndim == 1 else block.mean(axis=1)
            if queue is not None:
                queue.write(_frame(block, int(rate)))
            yield block if queue is None else _resampled(resampler, queue)
        if queue is not None:
            yield _resampled(resampler, queue, last=True)

    def _of_file(self, source: str | os.PathLike[str]) -> Iterator[Array]:
        path = Path(source)
        if not path.is_file():
            reason = "is a folder" if path.is_dir() else "does not exist"
            raise FileNotFoundError(f"{self.name}: {str(path)!r} {reason}; give the path of a sound or video file")
        if not path.stat().st_size:
            raise ValueError(f"{self.name}: {str(path)!r} is empty; give a sound or video file")
        av = load_av()
        try:
            container = av.open(f"file:{path}")
        except (av.error.FFmpegError, OSError) as error:
            raise ValueError(
                f"{self.name}: FFmpeg cannot read {str(path)!r} as sound or video ({error.strerror or error}); "
                "give another file, or convert it"
            ) from error
        with container:
            stream = container.streams.best("audio")
            if stream is None:
                raise ValueError(f"{self.name}: {str(path)!r} has no audio track; give a file with sound")
            yield from self._of_stream(av, container, stream)
            announced = _wav_seconds(path) or _announced(av, container, stream)
            if announced is not None and self.seconds < announced - max(MISSING, 0.02 * announced):
                self.notes.append(
                    f"{self.name} has {self.seconds:.1f} s of sound, but its header says {announced:.1f} s: "
                    "the file is damaged or incomplete"
                )

    def _of_stream(self, av: ModuleType, container: Any, stream: Any) -> Iterator[Array]:
        begin = (container.start_time or 0) / av.time_base
        setup: tuple[object, ...] | None = None
        queue, resampler = av.AudioFifo(), _resampler()
        done = 0.0  # seconds decoded so far
        for frame in self._frames(av, container, stream):
            now = frame.time - begin if frame.time is not None else done
            if GAP < now - done < LONGEST_GAP:
                yield _resampled(resampler, queue)
                yield np.zeros(round((now - done) * RATE), np.float32)
                done = now
            made = (frame.format.name, frame.layout.name, frame.sample_rate)
            if made != setup:
                yield _resampled(resampler, queue, last=True)
                setup, queue, resampler = made, av.AudioFifo(), _resampler()
            done += frame.samples / frame.sample_rate
            frame.pts = None
            queue.write(frame)
            if queue.samples >= BLOCK:  # resampling frame by frame takes five times as long
                yield _resampled(resampler, queue)
        yield _resampled(resampler, queue, last=True)

    def _frames(self, av: ModuleType, container: Any, stream: Any) -> Iterator[Any]:
        """Yield decoded frames; skip and count packets that cannot be decoded."""
        damaged = 0
        packets = container.demux(stream)
        while True:
            try:
                packet = next(packets, None)
            except (av.error.FFmpegError, OSError):
                self.notes.append(f"{self.name} cannot be read to its end: the file is damaged or incomplete")
                break
            if packet is None:
                break
            try:
                yield from packet.decode()
            except av.error.FFmpegError:
                damaged += 1
        if damaged:
            packets = "1 packet was" if damaged == 1 else f"{damaged} packets were"
            self.notes.append(f"{self.name} is damaged: {packets} skipped")


def _announced(av: ModuleType, container: Any, stream: Any) -> float | None:
    """The duration that the file's header states; None without one, or if FFmpeg estimated it from the bit rate."""
    if stream.duration is not None:
        stated = float(stream.duration * stream.time_base)
    elif container.duration is not None and len(container.streams) == 1:
        stated = container.duration / av.time_base
    else:
        return None
    estimate = 8 * container.size / stream.bit_rate if stream.bit_rate else 0.0
    return None if abs(estimate - stated) < 0.02 * stated else stated


def _wav_seconds(path: Path) -> float | None:
    """The duration that the header of a WAV file states, which FFmpeg hides by looking at the file's size."""
    with path.open("rb") as file:
        if file.read(12)[::8] != b"RW":  # RIFF, size, WAVE
            return None
        rate = 0
        while len(head := file.read(8)) == 8:
            size = int.from_bytes(head[4:], "little")
            if head[:4] == b"data":  # whoever writes to a pipe does not know the size: 0, or nearly the largest
                return size / rate if rate and 0 < size < UNKNOWN_SIZE else None
            chunk = file.read(min(size + size % 2, 1 << 20))
            if head[:4] == b"fmt ":
                rate = int.from_bytes(chunk[8:12], "little")  # bytes per second
    return None


def duration(path: str | os.PathLike[str]) -> float | None:
    """The seconds of sound in a file, without decoding it; None if FFmpeg cannot read it."""
    av = load_av()
    try:
        with av.open(f"file:{os.fspath(path)}") as container:
            stream = container.streams.best("audio")
            if stream is None:
                return None
            stated = _wav_seconds(Path(path)) or _announced(av, container, stream)
            if stated is not None:
                return stated
            packets = [p for p in container.demux(stream) if p.pts is not None]
            ends = [float((p.pts + (p.duration or 0)) * p.time_base) for p in packets]
            return max(ends) - (container.start_time or 0) / av.time_base if ends else None
    except (av.error.FFmpegError, OSError):
        return None


def frame_rate(path: str | os.PathLike[str]) -> Fraction | None:
    """The frames per second of a file's video track; None if it has none other than cover art."""
    with load_av().open(f"file:{os.fspath(path)}") as container:
        for stream in container.streams.video:
            if not int(stream.disposition) & 0x400:
                return Fraction(stream.average_rate or stream.guessed_rate or 25)
    return None


def load_av() -> ModuleType:
    """PyAV, or an error that says how to install it."""
    try:
        import av
    except ImportError:
        raise ImportError("reading sound and video needs PyAV: pip install 'dropdtw[media]'") from None
    found: ModuleType = av
    found.logging.set_level(found.logging.PANIC)  # FFmpeg's own messages; ours say what matters
    return found


def _resampler() -> Any:
    return load_av().AudioResampler(format="flt", layout="mono", rate=RATE)


def _frame(block: Array, rate: int) -> Any:
    frame = load_av().AudioFrame.from_ndarray(np.ascontiguousarray(block)[None], format="flt", layout="mono")
    frame.sample_rate = rate
    return frame


def _resampled(resampler: Any, queue: Any, last: bool = False) -> Array:
    """The samples of the frames in a queue; after the `last` of them, also those that the resampler still holds."""
    frames = [queue.read()] if queue.samples else []
    parts = [part.to_ndarray()[0] for frame in frames + [None] * last for part in resampler.resample(frame)]
    return np.concatenate(parts).astype(np.float32) if parts else np.zeros(0, np.float32)

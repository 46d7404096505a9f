"""Made sounds for tests of recordings, and files of them."""

import numpy as np

RATE = 16_000


def gusts(seed, seconds, rate=RATE):
    """Noise whose loudness wanders in three bands, a few times a second: nothing in it comes twice."""
    rng = np.random.default_rng(seed)
    n = int(seconds * rate)
    white = np.fft.rfft(rng.normal(size=n))
    f = np.fft.rfftfreq(n, 1 / rate)
    at, knots = np.arange(n) / rate, np.arange(0, seconds + 1, 0.2)
    out = np.zeros(n)
    for low, high in ((100, 600), (600, 2000), (2000, 6000)):
        band = np.fft.irfft(np.where((f >= low) & (f < high), white, 0), n)
        out += band / band.std() * np.interp(at, knots, np.exp(rng.normal(size=len(knots))))
    return (0.05 * out).astype(np.float32)


def cut(x, *spans, rate=RATE):
    """Passages of a sound, (start, stop) in seconds, one after the other; arrays are taken as they are."""
    parts = [x[round(p[0] * rate) : round(p[1] * rate)] if isinstance(p, tuple) else p for p in spans]
    return np.concatenate(parts)


def write(path, x, rate=RATE, *, codec="pcm_s16le", layout="mono", bits=None, video=False, audio=True):
    """Write a sound to a file with PyAV, at `bits` per second; `video` adds a black picture."""
    import av

    with av.open(str(path), "w") as file:
        pictures = file.add_stream("mpeg4", rate=5) if video else None  # all streams before the first packet
        stream = file.add_stream(codec, rate=rate, layout=layout) if audio else None
        if bits is not None:
            stream.bit_rate = bits
        if pictures is not None:
            pictures.width = pictures.height = 32
            pictures.pix_fmt = "yuv420p"
            for _ in range(5):
                frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")
                file.mux(pictures.encode(frame))
            file.mux(pictures.encode(None))
        if stream is not None:
            resampler = av.AudioResampler(stream.format, layout, rate, frame_size=stream.frame_size)
            whole = np.clip(32768 * x, -32768, 32767).astype(np.int16).reshape(1, -1)
            frame = av.AudioFrame.from_ndarray(whole, format="s16", layout=layout)
            frame.sample_rate = rate
            for part in [*resampler.resample(frame), *resampler.resample(None)]:
                file.mux(stream.encode(part))
            file.mux(stream.encode(None))
    return path


def close(found, truth, within):
    """Whether the rows of edits are those expected: (kind, a, b), spans within seconds."""
    if [s.kind for s in found.segments] != [kind for kind, _, _ in truth]:
        return False
    for segment, (_, a, b) in zip(found.segments, truth, strict=True):
        for span, wanted in ((segment.a, a), (segment.b, b)):
            if (span is None) != (wanted is None):
                return False
            if span is not None and np.abs(np.subtract(span, wanted)).max() > within:
                return False
    return True

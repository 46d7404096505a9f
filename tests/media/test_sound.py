"""Files of all kinds become the same samples, and files that hold no sound are refused with a reason."""

import re
import sys

import numpy as np
import pytest

from dropdtw.media.sound import RATE, Sound, duration, frame_rate, load_av
from sound_cases import gusts, write

pytest.importorskip("av", reason="PyAV is not installed: pip install 'dropdtw[media]'")

X = gusts(0, 4)


def read(source):
    sound = Sound(source, "A")
    samples = np.concatenate([*sound.blocks(), np.zeros(0, np.float32)])
    assert sound.seconds == len(samples) / RATE
    return samples, sound.notes


def correlation(x, y, late=0):
    """Of two sounds; x may begin up to `late` samples late, by what its encoder puts before it."""
    n = min(len(x), len(y)) - late
    return max(np.corrcoef(x[k : k + n], y[:n])[0, 1] for k in range(0, late + 1))


@pytest.mark.parametrize(
    ("name", "codec", "layout", "least", "late"),
    [
        ("x.wav", "pcm_s16le", "mono", 0.9999, 0),
        ("x.flac", "flac", "mono", 0.9999, 0),
        ("x.mp3", "libmp3lame", "mono", 0.9, 0),
        ("x.ogg", "libopus", "mono", 0.9, 0),
        ("x.m4a", "aac", "mono", 0.9, 1024),
        ("x.wav", "pcm_s16le", "stereo", 0.9999, 0),
    ],
)
def test_every_format_gives_the_same_samples(tmp_path, name, codec, layout, least, late):
    x = X if layout == "mono" else np.repeat(X, 2)
    found, notes = read(write(tmp_path / name, x, codec=codec, layout=layout))
    assert notes == []
    assert duration(tmp_path / name) == pytest.approx(4, abs=0.1)
    assert len(found) == pytest.approx(len(X), abs=0.1 * RATE)
    assert correlation(found, X, late) > least


@pytest.mark.parametrize("rate", [8000, 11025, 44100, 48000])
def test_every_rate_lasts_as_long_and_sounds_the_same(rate, tmp_path):
    sound = np.sin(2 * np.pi * 440 * np.arange(2 * rate) / rate) / 2
    same = np.sin(2 * np.pi * 440 * np.arange(2 * RATE) / RATE)
    for source in ((sound, rate), write(tmp_path / "x.wav", sound, rate)):
        found, _ = read(source)
        assert len(found) == 2 * RATE
        assert correlation(found[1000:-1000], same[1000:-1000]) > 0.99


def test_integers_and_channels_are_scaled_and_mixed():
    whole = (32767 * np.clip(X, -1, 1)).astype(np.int16)
    found, _ = read((np.stack([whole, np.zeros_like(whole)], axis=1), RATE))
    np.testing.assert_allclose(found, np.clip(X, -1, 1) / 2, atol=1e-4)


def test_sound_of_a_video_is_read(tmp_path):
    found, _ = read(write(tmp_path / "x.mkv", X, video=True))
    assert correlation(found, X) > 0.999


def test_video_without_sound_is_refused(tmp_path):
    path = write(tmp_path / "x.mkv", X, video=True, audio=False)
    assert duration(path) is None
    with pytest.raises(ValueError, match=r"has no audio track; give a file with sound"):
        read(path)


@pytest.mark.parametrize("content", [b"no sound at all" * 100, b"RIFF\0\0\0\0WAVE"])
def test_file_that_is_no_sound_is_refused(tmp_path, content):
    path = tmp_path / "x.wav"
    path.write_bytes(content)
    assert duration(path) is None
    unreadable = r"FFmpeg cannot read '.*x\.wav' as sound or video \([^\[]*\); give another file, or convert it"
    with pytest.raises(ValueError, match=rf"{unreadable}|x\.wav.*no audio track"):
        read(path)


def test_missing_and_empty_files_and_folders_are_named(tmp_path):
    (tmp_path / "empty.wav").touch()
    with pytest.raises(ValueError, match=r"empty\.wav' is empty; give a sound or video file"):
        read(tmp_path / "empty.wav")
    with pytest.raises(FileNotFoundError, match=r"gone\.wav' does not exist"):
        read(tmp_path / "gone.wav")
    with pytest.raises(FileNotFoundError, match=r"is a folder; give the path"):
        read(tmp_path)


@pytest.mark.parametrize(("name", "codec"), [("x.mp3", "libmp3lame"), ("x.ogg", "libopus"), ("x.wav", "pcm_s16le")])
def test_truncated_file_gives_what_is_left(tmp_path, name, codec):
    path = write(tmp_path / name, X, codec=codec)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    found, notes = read(path)
    assert 0.9 * RATE < len(found) < 2.5 * RATE
    assert correlation(found, X) > 0.9
    said = f"A has {len(found) / RATE:.1f} s of sound, but its header says 4.0 s: the file is damaged or incomplete"
    assert notes == ([] if name == "x.ogg" else [said])  # Ogg files have no header that states a duration


@pytest.mark.parametrize("size", [0, 0x7FFFFFDB, 0xFFFFFFFF])
def test_a_wav_file_from_a_pipe_does_not_state_its_duration(tmp_path, size):
    path = write(tmp_path / "x.wav", X)
    content = path.read_bytes()
    at = content.index(b"data") + 4
    path.write_bytes(content[:at] + size.to_bytes(4, "little") + content[at + 4 :])
    assert read(path)[1] == []


def test_duration_that_ffmpeg_only_estimates_is_no_sign_of_damage(tmp_path):
    frames = []  # without the header, and at first at a low bit rate: as if it were to last longer
    for bits in (32_000, 128_000):
        content = write(tmp_path / f"{bits}.mp3", X, codec="libmp3lame", bits=bits).read_bytes()
        frames.append(content[content.index(b"\xff\xf3", content.index(b"Info")) :])
    (tmp_path / "x.mp3").write_bytes(b"".join(frames))
    found, notes = read(tmp_path / "x.mp3")
    assert duration(tmp_path / "x.mp3") == pytest.approx(8, abs=0.3)
    assert len(found) == pytest.approx(2 * len(X), abs=0.3 * RATE)  # and what the encoder puts before and after
    assert notes == []


def test_rate_may_change_within_a_file(tmp_path):
    parts = [
        write(tmp_path / f"{rate}.mp3", np.repeat(X, rate // RATE), rate, codec="libmp3lame")
        for rate in (RATE, 2 * RATE)
    ]
    (tmp_path / "x.mp3").write_bytes(b"".join(part.read_bytes() for part in parts))
    found, _ = read(tmp_path / "x.mp3")
    assert len(found) == pytest.approx(2 * len(X), abs=0.3 * RATE)


def test_clock_that_begins_late_adds_no_silence(tmp_path):
    import av

    with av.open(str(write(tmp_path / "x.wav", X))) as file, av.open(str(tmp_path / "x.mka"), "w") as late:
        stream = late.add_stream_from_template(file.streams.audio[0])
        for packet in file.demux(audio=0):
            if packet.pts is not None:
                packet.pts = packet.dts = packet.pts + 10 * RATE
                packet.stream = stream
                late.mux(packet)
    found, _ = read(tmp_path / "x.mka")
    assert len(found) == pytest.approx(len(X), abs=0.01 * RATE)
    assert correlation(found, X) > 0.999


@pytest.mark.parametrize("cover", [False, True])
def test_cover_art_is_no_video(tmp_path, cover):
    path = write(tmp_path / "x.mkv", X, video=True)
    if cover:
        import av

        path = tmp_path / "x.mp3"
        with av.open(str(tmp_path / "x.mkv")) as film, av.open(str(path), "w") as song:
            sound = song.add_stream("libmp3lame", rate=RATE, layout="mono")
            art = song.add_stream("mjpeg")
            art.width = art.height = 32
            art.pix_fmt = "yuvj420p"
            art.disposition = av.stream.Disposition.attached_pic
            for frame in film.decode(audio=0):
                song.mux(sound.encode(frame))
            song.mux(sound.encode(None))
            song.mux(art.encode(av.VideoFrame(32, 32, "yuvj420p")))
            song.mux(art.encode(None))
    assert (frame_rate(path) is None) is cover


def test_damaged_packets_leave_silence_of_their_length_and_a_note(tmp_path):
    path = write(tmp_path / "x.m4a", X, codec="aac")
    content = bytearray(path.read_bytes())
    third, half = len(content) // 3, len(content) // 2
    content[third:half] = bytes(half - third)
    path.write_bytes(content)
    found, notes = read(path)
    assert len(found) == pytest.approx(len(X), abs=0.1 * RATE)
    assert not found[int(1.5 * RATE) : int(1.8 * RATE)].any()
    assert correlation(found[3 * RATE :], X[3 * RATE :], 1024) > 0.9
    assert len(notes) == 1
    assert re.fullmatch(r"A is damaged: (1 packet was|\d+ packets were) skipped", notes[0])


def test_one_sample_is_one_sample():
    found, _ = read((np.ones(1, np.float32), RATE))
    assert found.tolist() == [1.0]


@pytest.mark.parametrize(
    ("source", "says", "does"),
    [
        ((["a", "b"], RATE), "type <U1", "give numbers"),
        ((np.zeros((2, 2, 2)), RATE), "(2, 2, 2)", "(n, channels)"),
        ((np.zeros(5), 0), "rate of 0", "samples per second"),
        ((np.zeros(5), 44100.5), "44100.5", "an int from 1000"),
        ((np.zeros(5), True), "True", "an int from 1000"),
        ((np.array([0, np.nan]), RATE), "NaN", "for example with 0 (silence)"),
    ],
)
def test_samples_that_make_no_sense_are_refused(source, says, does):
    with pytest.raises(ValueError, match=r"^A has") as caught:
        read(source)
    assert says in str(caught.value)
    assert does in str(caught.value)


def test_without_pyav_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ImportError, match=r"pip install 'dropdtw\[media\]'"):
        load_av()

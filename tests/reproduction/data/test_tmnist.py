"""MNIST from files, and the videos made of it: the digit's position, that it is complete, and seeds."""

import gzip
import hashlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from reproduction.data import mnist, tmnist

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(1, 256, (40, 28, 28), dtype=np.uint8)
LABELS = np.arange(40) % 10


def idx(array):
    shape = struct.pack(f">{array.ndim}i", *array.shape)
    return bytes([0, 0, 8, array.ndim]) + shape + array.astype(np.uint8).tobytes()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A tiny MNIST in the published layout, two files packed and two plain."""
    parts = [IMAGES, LABELS, IMAGES[:10], LABELS[:10]]
    known = {}
    for number, (name, array) in enumerate(zip(mnist.FILES, parts, strict=True)):
        content = idx(array)
        known[name] = hashlib.sha256(content).hexdigest()
        path = tmp_path / (name if number % 2 else f"{name}.gz")
        path.write_bytes(content if number % 2 else gzip.compress(content))
    monkeypatch.setattr(mnist, "FILES", known)
    monkeypatch.delenv("DROPDTW_DATA", raising=False)
    return tmp_path


def test_the_published_files_are_read(folder, monkeypatch):
    for found in (mnist.load(folder), mnist.load(str(folder))):
        np.testing.assert_array_equal(found.train_images, IMAGES)
        np.testing.assert_array_equal(found.train_labels, LABELS)
        np.testing.assert_array_equal(found.test_images, IMAGES[:10])
        np.testing.assert_array_equal(found.test_labels, LABELS[:10])
        assert str(folder) in found.source
    monkeypatch.setenv("DROPDTW_DATA", str(folder))
    assert len(mnist.load().train_images) == 40
    (folder / "mnist").mkdir()
    for name in os.listdir(folder):
        if name != "mnist":
            (folder / name).rename(folder / "mnist" / name)
    assert len(mnist.load().train_images) == 40


def test_a_missing_or_broken_file_is_named(folder):
    first, second, *_ = mnist.FILES
    packed, plain = folder / f"{first}.gz", folder / second
    whole = packed.read_bytes()
    packed.write_bytes(whole[:-20])
    with pytest.raises(ValueError, match=f"{first}.gz cannot be unpacked.*download it again"):
        mnist.load(folder)
    packed.write_bytes(gzip.compress(idx(IMAGES[::-1])))
    with pytest.raises(ValueError, match=f"{first} is not the published file.*download it again"):
        mnist.load(folder)
    packed.write_bytes(whole)
    plain.unlink()
    with pytest.raises(FileNotFoundError, match=f"has no {second}, plain or with .gz; put the four MNIST files"):
        mnist.load(folder)
    with pytest.raises(FileNotFoundError, match=r"nowhere has no MNIST; put the four"):
        mnist.load(folder / "nowhere")


def test_without_files_the_digits_of_a_package_serve(tmp_path, monkeypatch):
    monkeypatch.delenv("DROPDTW_DATA", raising=False)
    rows = np.concatenate([IMAGES.reshape(40, -1), np.sort(LABELS)[:, None]], axis=1)
    content = gzip.compress("\n".join(",".join(map(str, row)) for row in rows).encode())
    package = tmp_path / "carrier"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('read my files, do not import me')")
    monkeypatch.syspath_prepend(str(tmp_path))
    checksum = hashlib.sha256(content).hexdigest()
    monkeypatch.setattr(mnist, "INSIDE", ("carrier", "digits.csv.gz", checksum))
    with pytest.raises(FileNotFoundError, match=r"digits\.csv\.gz is missing: this version of carrier"):
        mnist.load()
    (package / "digits.csv.gz").write_bytes(content)
    for found in (mnist.load(), mnist.load(None)):
        assert len(found.train_images) == 32
        assert len(found.test_images) == 8
        assert found.source == "5,000 digits inside carrier"
        np.testing.assert_array_equal(found.test_images[0], IMAGES[4])
    monkeypatch.setenv("DROPDTW_DATA", str(tmp_path))  # other data sets may be there
    assert len(mnist.load().test_images) == 8
    monkeypatch.setattr(mnist, "INSIDE", ("not_installed_at_all", "digits.csv.gz", checksum))
    with pytest.raises(FileNotFoundError, match="no MNIST digits: not_installed_at_all is not installed"):
        mnist.load()


def test_the_real_digits_where_they_are():
    """All of MNIST, if DROPDTW_DATA is its folder."""
    place = os.environ.get("DROPDTW_DATA")
    if place is None or not any(Path(place).rglob("train-images-idx3-ubyte*")):
        pytest.skip("DROPDTW_DATA has no MNIST")
    found = mnist.load()
    assert found.train_images.shape == (60000, 28, 28)
    assert np.bincount(found.test_labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


# Videos


@pytest.mark.parametrize("name", tmnist.TRAJECTORIES)
def test_trajectories_stay_on_the_canvas_at_an_even_speed(name):
    places = tmnist.corners(name, 50)
    assert places.shape == (50, 2)
    assert places.min() >= 0
    assert places.max() <= tmnist.CANVAS - tmnist.DIGIT
    speed = np.hypot(*np.diff(places, axis=0).T)
    assert np.abs(speed - speed.mean()).max() < np.sqrt(2)  # rounding moves each end by up to half a diagonal
    closed = name not in "/\\"
    assert (places[0] == places[-1]).all() == closed


def test_trajectories_are_what_they_are_called():
    circle = tmnist.corners("○", 41) - 18.0
    np.testing.assert_allclose(np.hypot(*circle.T), 18, atol=1)
    row, column = circle[10]  # a quarter of the way, clockwise from the top: on the right
    assert abs(row) <= 1
    assert column >= 17
    np.testing.assert_array_equal(
        tmnist.corners("/", 19), np.stack([36 - 2 * np.arange(19), 2 * np.arange(19)], axis=1)
    )
    np.testing.assert_array_equal(tmnist.corners("\\", 37), np.stack([np.arange(37)] * 2, axis=1))
    tall, wide = tmnist.corners("8", 200), tmnist.corners("∞", 200)
    assert np.ptp(tall, axis=0).tolist() == [36, 18]
    assert np.ptp(wide, axis=0).tolist() == [18, 36]
    for figure in (tall, wide):  # both pass through the middle twice
        middle = np.abs(figure - 18).max(axis=1) <= 1
        assert np.diff(np.flatnonzero(middle)).max() > 50
    for name in ("8", "∞", "○"):
        np.testing.assert_array_equal(tmnist.corners(f"{name} reversed", 33), tmnist.corners(name, 33)[::-1])
        assert not np.array_equal(tmnist.corners(f"{name} reversed", 33), tmnist.corners(name, 33))


@pytest.mark.parametrize("part", [False, True])
def test_every_class_has_a_clip_with_the_digit_whole(part):
    clips = tmnist.data_set(IMAGES, LABELS, part, seed=3)
    assert len({c.label for c in clips}) == len(clips) == 80
    lengths = [len(c.frames) for c in clips]
    low, high = tmnist.LENGTHS
    assert min(lengths) >= (low * tmnist.PARTS[0] if part else low) - 1
    assert max(lengths) <= (high * tmnist.PARTS[1] if part else high) + 1
    assert len(set(lengths)) > 10
    for c in clips:
        assert c.frames.dtype == np.float32
        for frame, (row, column) in zip(c.frames, c.corners, strict=True):
            inside = frame[row : row + 28, column : column + 28]
            assert np.count_nonzero(inside) == 28 * 28  # the test's digits have no zero
            assert np.count_nonzero(frame) == 28 * 28
            shown = np.rint(255 * inside).astype(np.uint8)
            assert any(np.array_equal(shown, IMAGES[k]) for k in np.flatnonzero(c.digit == LABELS))


def test_a_part_is_a_stretch_of_its_whole():
    whole = tmnist.clip(IMAGES[0], 0, "∞", 40)
    part = tmnist.clip(IMAGES[0], 0, "∞", 40, (7, 29))
    np.testing.assert_array_equal(part.frames, whole.frames[7:29])
    np.testing.assert_array_equal(part.corners, whole.corners[7:29])


def test_the_seed_decides():
    once, again, other = (tmnist.data_set(IMAGES, LABELS, True, seed=s) for s in (1, 1, 2))
    for a, b in zip(once, again, strict=True):
        np.testing.assert_array_equal(a.frames, b.frames)
    assert any(len(a.frames) != len(b.frames) for a, b in zip(once, other, strict=True))


@pytest.mark.parametrize("share", [0, 0.3, 1])
def test_blurring_changes_that_share_of_frames(share):
    clip = tmnist.clip(IMAGES[3], 3, "8", 40)
    blurred = tmnist.blur(clip, share, np.random.default_rng(0))
    changed = [not np.array_equal(a, b) for a, b in zip(clip.frames, blurred.frames, strict=True)]
    assert sum(changed) == round(share * 40)
    np.testing.assert_array_equal(blurred.blurred, changed)
    assert not clip.blurred.any()
    if share == 1:  # a blur keeps the sum, except for what leaves the canvas
        np.testing.assert_allclose(blurred.frames[20].sum(), clip.frames[20].sum(), rtol=0.05)
        assert blurred.frames[20].max() < clip.frames[20].max()


def test_clips_become_pictures(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="pictures need Pillow")
    clips = tmnist.data_set(IMAGES, LABELS, True, seed=0)[:3]
    tmnist.contact_sheet(clips, tmp_path / "sheet.png", columns=5)
    with image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (5 * 66 + 2, 3 * 66 + 2)
        np.testing.assert_array_equal(np.asarray(sheet)[2:66, 2:66], np.rint(255 * clips[0].frames[0]))
    tmnist.gif(clips[1], tmp_path / "clip.gif")
    with image.open(tmp_path / "clip.gif") as shown:
        assert shown.n_frames > 1
        assert shown.size == (192, 192)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tmnist.corners("spiral", 30), "trajectory is 'spiral'; choose one of '8'"),
        (lambda: tmnist.corners("8", 1), "length is 1; give at least 2 frames"),
        (lambda: tmnist.clip(IMAGES[0], 0, "8", 30, (5, 31)), r"part is \(5, 31\); give frames 0 ≤ start < stop ≤ 30"),
        (
            lambda: tmnist.blur(tmnist.clip(IMAGES[0], 0, "8", 30), 30, RNG),
            "blurred frames is 30; give a number from 0",
        ),
    ],
)
def test_errors_say_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()

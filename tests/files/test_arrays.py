"""Arrays from bytes that may be anything."""

import random
import warnings

import numpy as np
import pytest

from array_cases import claiming, saved, zipped
from dropdtw.files import arrays, atomic, formats

VALUES = np.arange(60.0).reshape(20, 3)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("array", [VALUES, VALUES.T, np.float32(3), np.arange(5), np.zeros((0, 2)), np.array(["a"])])
def test_arrays_come_back(save, array):
    array = np.asarray(array)
    np.testing.assert_array_equal(arrays.npy(saved(np.save, array)), array)
    content = saved(save, a=array, b=VALUES)
    assert arrays.npz_names(content) == ["a", "b"]
    np.testing.assert_array_equal(arrays.npz(content, "a"), array)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("shape", [(10**12, 3), (10**30,), (3, 2)])
def test_no_memory_is_taken_for_numbers_that_are_not_there(tmp_path, shape, version):
    content = claiming(shape, follow=bytes(40), version=version)
    with pytest.raises(ValueError, match=r"its header claims [\d,]+ bytes of numbers, but 40 follow"):
        arrays.npy(content)
    (tmp_path / "a.npy").write_bytes(content)
    (tmp_path / "a.npz").write_bytes(zipped(a=content))
    with pytest.raises(ValueError, match=r"a\.npy cannot be read as \.npy: its header claims"):
        formats.read(tmp_path / "a.npy")
    with pytest.raises(ValueError, match=r"a\.npz cannot be read as \.npz: its array 'a' cannot .* header claims"):
        formats.read(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"header claims .*make it again"):
        atomic.read_arrays(tmp_path / "a.npz")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's own, of the product of the lengths
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("shape", [(10**30, 0), (True, 3), (-1, 3), (0, 1 << 62, 1 << 62)])
def test_lengths_that_cannot_be_are_a_damage(shape, version):
    with pytest.raises(ValueError, match="damaged"):
        arrays.npy(claiming(shape, follow=bytes(40), version=version))


@pytest.mark.parametrize(
    "content", [b"random bytes", random.Random(0).randbytes(300), b"PK\x03\x04", b"PK\x05\x06 half"]
)
def test_nobody_is_told_to_unpickle(tmp_path, content):
    for name in ("a.npz", "a.npy"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name} cannot be read as") as raised:
            formats.read(tmp_path / name)
        assert "pickle" not in str(raised.value)
    with pytest.raises(ValueError, match=r"a\.npz cannot be read as") as raised:
        formats.sequences(tmp_path / "a.npz")
    assert "pickle" not in str(raised.value)


def test_objects_stay_packed():
    with pytest.raises(ValueError, match=r"never unpickled .*; save plain numbers"):
        arrays.npy(saved(np.save, np.array([print], object), allow_pickle=True))


def test_locked_archives_are_refused():
    content = bytearray(zipped(a=saved(np.save, VALUES)))
    for start, flags in ((content.index(b"PK\x03\x04"), 6), (content.index(b"PK\x01\x02"), 8)):
        content[start + flags] |= 1  # encrypted
    with pytest.raises(ValueError, match=r"it is damaged .*encrypted"):
        arrays.npz(bytes(content), "a")


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_give_one_kind_of_error(seed):
    """Bytes changed, cut out and put in, wherever chance takes them."""
    rng, said = random.Random(seed), []
    whole = [saved(np.save, VALUES), saved(np.savez, a=VALUES), saved(np.savez_compressed, a=VALUES)]
    for _ in range(400):
        content = bytearray(rng.choice(whole))
        for _ in range(rng.choice([1, 1, 3])):
            k = rng.randrange(len(content))
            content[k : k + rng.choice([0, 1, 1, 9])] = rng.randbytes(rng.choice([0, 1, 1, 5]))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of headers that Python 2 has written
                if content.startswith(arrays.MAGIC):
                    arrays.npy(bytes(content))
                else:
                    for name in arrays.npz_names(bytes(content)):
                        arrays.npz(bytes(content), name)
        except ValueError as error:
            said.append(str(error))
    assert len(said) > 300
    assert not any("allow_pickle=True" in text for text in said)

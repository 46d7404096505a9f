"""The encoder of TMNIST frames: shapes as in the appendix, reproducible training, and codes that encode position."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the encoder needs PyTorch: pip install dropdtw[torch]")

from reproduction.common import encoder as encoders  # noqa: E402
from reproduction.common.encoder import Encoder, accuracy, shifted, train  # noqa: E402
from reproduction.data import tmnist  # noqa: E402
from reproduction.data.mnist import Mnist  # noqa: E402


def digits(n, seed):
    """Ten easy classes: a bright square in noise, at a different grid position for each digit."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 10
    images = rng.integers(0, 60, (n, 28, 28), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        row, column = 5 + 8 * (label // 5), 3 + 4 * (label % 5)
        image[row : row + 6, column : column + 3 + label % 3] = 255
    return images, labels


DATA = Mnist(*digits(400, 0), *digits(100, 1), "made up")


def test_layers_have_the_appendix_shapes():
    encoder = Encoder()
    x = torch.rand(2, 28, 28)[:, None].expand(-1, 3, -1, -1)
    shapes = []
    for layer in encoder.layers:
        x = layer(x)
        if isinstance(layer, torch.nn.Dropout):
            shapes.append(tuple(x.shape[1:]))
    assert shapes == [(64, 14, 14), (128, 7, 7), (64, 3, 3), (32, 3, 3)]
    assert encoder(torch.rand(2, 28, 28)).shape == (2, 10)


def test_training_learns_reports_and_reproduces():
    seen = []
    encoder = train(DATA, epochs=4, batch=40, seed=5, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(k, 40) for k in range(1, 41)]
    assert accuracy(encoder, DATA.test_images, DATA.test_labels) > 0.4  # chance is 0.1
    few = Mnist(DATA.train_images[:80], DATA.train_labels[:80], DATA.test_images, DATA.test_labels, "fewer")
    encoder, again, other = (train(few, epochs=1, batch=40, seed=s) for s in (5, 5, 6))
    for a, b, c in zip(*(e.state_dict().values() for e in (encoder, again, other)), strict=True):
        assert torch.equal(a, b)
        if a.ndim > 1:
            assert not torch.equal(a, c)


def test_codes_know_what_and_where():
    encoder = Encoder()
    clip = tmnist.clip(DATA.train_images[3], 3, "\\", 30)
    codes = encoder.codes(clip.frames, batch=7)
    assert codes.shape == (30, 3 * 3 * 32)
    np.testing.assert_allclose(codes, encoder.codes(clip.frames), atol=1e-5)
    assert encoder.codes(clip.frames[:1]).shape == (1, 288)
    cells = np.abs(codes - encoder.codes(np.zeros((1, 64, 64), np.float32))).reshape(30, 32, 3, 3).sum(axis=1)
    assert cells[0].argmax() in (0, 1, 3, 4)  # the digit starts at the top left
    assert cells[0, 0, 0] > cells[0, 2, 2]
    assert cells[-1, 2, 2] > cells[-1, 0, 0]  # and ends at the bottom right


def test_shifting_moves_whole_images():
    generator = torch.Generator().manual_seed(0)
    images = torch.zeros(200, 9, 9)
    images[:, 4, 4] = 1
    moved = shifted(images, 2, generator)
    assert moved.shape == images.shape
    assert (moved.sum(dim=(1, 2)) == 1).all()
    places = {tuple(p[1:].tolist()) for p in moved.nonzero()}
    assert places == {(i, j) for i in range(2, 7) for j in range(2, 7)}


def test_an_encoder_is_saved_and_loaded_and_a_foreign_file_refused(tmp_path):
    encoder = encoders.Encoder()
    encoders.save(encoder, tmp_path / "e.npz")
    for a, b in zip(
        encoder.state_dict().values(), encoders.load(tmp_path / "e.npz").state_dict().values(), strict=True
    ):
        assert torch.equal(a, b)
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match=r"other\.npz does not fit this encoder"):
        encoders.load(tmp_path / "other.npz")
    np.save(tmp_path / "evil.npy", np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"evil\.npy is not an \.npz of plain arrays"):
        encoders.load(tmp_path / "evil.npy")
    (tmp_path / "half.npz").write_bytes((tmp_path / "e.npz").read_bytes()[:500])
    with pytest.raises(ValueError, match=r"half\.npz is not an \.npz of plain arrays"):
        encoders.load(tmp_path / "half.npz")
    with pytest.raises(FileNotFoundError):
        encoders.load(tmp_path / "missing.npz")

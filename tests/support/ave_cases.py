"""Synthetic AVE and GRID data in the published layouts."""

import numpy as np

from reproduction.data import grid

SPANS = [(0, 10), (6, 8), (0, 3), (5, 10), (2, 9), (0, 0), (4, 5), (1, 4)]


def write(path, name, array):
    import h5py

    with h5py.File(path, "w") as file:
        file[name] = array


def write_ave(folder):
    """Eight videos in AVE's published layout, with features."""
    rng = np.random.default_rng(0)
    lines = [f"Church bell&video{k}&good&{a}&{b}" for k, (a, b) in enumerate(SPANS)]
    (folder / "Annotations.txt").write_text("\n".join(lines) + "\n")
    seconds = np.array([[a <= t < b for t in range(10)] for a, b in SPANS], np.float32)
    write(folder / "labels_closs.h5", "avadataset", seconds)
    write(folder / "audio_feature.h5", "avadataset", rng.normal(size=(8, 10, 128)))
    write(folder / "visual_feature_vec.h5", "avadataset", rng.normal(size=(8, 10, 512)).astype(np.float32))
    for split, rows in (("train", [3, 0, 5, 1]), ("val", [2, 6]), ("test", [7, 4])):
        write(folder / f"{split}_order_match.h5", "order", np.array(rows))
    return folder


def write_grid(folder):
    """A tiny GRID: sound and lips are linear in the same hidden motion; in one sentence the face was lost."""
    n, T = 30, 40
    rng = np.random.default_rng(3)
    hidden = np.cumsum(rng.normal(size=(n, T, 6)), axis=1)
    lips = (hidden @ rng.normal(size=(6, 80))).reshape(n, T, 40, 2)
    sound = (hidden @ rng.normal(size=(6, 80))).reshape(n, 2 * T, 40)
    lips[4, 7] = np.nan
    words = np.array([["sil", "bin", "blue", "sp", "now", "sil"]] * n)
    frames = np.array([[[0, 8], [8, 14], [14, 21], [21, 21], [24, 30], [30, 40]]] * n)
    name = np.array([f"clip{k}" for k in range(n)])
    content = {"name": name, "lips": lips, "logmel": sound, "words": words, "word_frames": frames}
    np.savez(folder / grid.FILE, **content)
    return folder

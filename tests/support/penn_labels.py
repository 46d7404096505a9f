"""Synthetic labels in the layout of Penn Action."""

import numpy as np


def person(T, seed=0):
    """Joints (T, 13, 2) somewhere in an image."""
    return 50 + 100 * np.random.default_rng(seed).random((T, 13, 2))


def write_labels(folder):
    """Six videos in the published layout."""
    from scipy.io import savemat

    (folder / "labels").mkdir()
    for k in range(6):
        xy = person(20 + k, k)
        label = {
            "action": "tennis_serve" if k % 2 else "pull_ups",
            "pose": "front",
            "train": 1 if k < 4 else -1,
            "dimensions": np.array([[270, 480, 20 + k]]),
            "nframes": 20 + k,
            "x": xy[..., 0],
            "y": xy[..., 1],
            "visibility": np.ones((20 + k, 13)),
            "bbox": np.zeros((20 + k, 4)),
        }
        savemat(folder / "labels" / f"{k + 1:04d}.mat", label)
    return folder

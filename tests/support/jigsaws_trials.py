"""Trials in the layout of jigsaws.npz: each gesture is one raised channel."""

import numpy as np

PLANS = {"Suturing": ("G1", "G2", "G1", "G3"), "Knot_Tying": ("G11", "G1", "G12", "G11")}
CHANNELS = ("G1", "G2", "G3", "G11", "G12")


def write_trials(folder, subjects=("S02", "S03", "S04", "S07"), noise=0.3, seed=0):
    """Two trials of each task per subject; S07 has one task only. Returns the arrays."""
    rng = np.random.default_rng(seed)
    names, lengths, frames, segments, gestures = [], [], [], [], []
    for subject in subjects:
        for task, plan in PLANS.items():
            if subject == "S07" and task != "Suturing":
                continue
            for trial in (1, 2):
                at, parts = 10, [np.zeros((10, len(CHANNELS)))]
                for gesture in plan:
                    length = 5 * int(rng.integers(4, 16))
                    parts.append(np.tile(np.eye(len(CHANNELS))[CHANNELS.index(gesture)], (length, 1)))
                    segments.append((len(names), at, at + length))
                    gestures.append(gesture)
                    at += length
                names.append(f"{task}_{subject}_T{trial:02d}")
                lengths.append(at)
                frames.append(np.concatenate(parts))
    whole = np.concatenate(frames)
    arrays = {
        "names": np.array(names),
        "lengths": np.array(lengths),
        "kinematics": (whole + noise * rng.normal(size=whole.shape)).astype(np.float32),
        "segments": np.array(segments),
        "gestures": np.array(gestures),
    }
    np.savez(folder / "jigsaws.npz", **arrays)
    return arrays

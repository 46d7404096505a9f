"""A noisy recording of four steps: Drop-DTW finds the steps, while the junk misleads plain DTW.

Run with `.venv/bin/python examples/quickstart.py` after `make setup`.
"""

import numpy as np

import dropdtw
from dropdtw import metrics

STEPS = ["grind", "tamp", "brew", "pour"]


def recording(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Four steps as vectors; noisy frames that show them, with unrelated passages in between; the true labels."""
    Z = rng.normal(size=(len(STEPS), 16))
    truth = np.repeat([-1, 0, -1, 1, -1, 2, -1, 3, -1], [6, 8, 5, 3, 9, 7, 4, 8, 7])
    junk = rng.normal(size=(len(truth), 16))
    X = np.where(truth[:, None] >= 0, Z[truth] + 0.6 * junk, junk)
    return Z, X, truth


def strip(labels: np.ndarray) -> str:
    """One character per frame: the step's initial, or a dot where the frame is dropped."""
    return "".join(STEPS[k][0] if k >= 0 else "·" for k in labels)


def main() -> None:
    Z, X, truth = recording(np.random.default_rng(7))
    found = dropdtw.align(Z, X, drop_x="percentile:15", match="cosine", method="steps")
    warped = dropdtw.align(Z, X, match="cosine", method="dtw")
    print(f"{len(STEPS)} steps ({', '.join(STEPS)}) in {len(X)} frames, one letter per frame, · for no step:\n")
    for name, labels in (("truth", truth), ("Drop-DTW", found.labels), ("DTW", warped.labels)):
        score = f"accuracy {metrics.frame_accuracy(labels, truth):4.0%}, IoU {metrics.iou(labels, truth):4.0%}"
        print(f"  {name:9}{strip(labels)}  {score}")
    print()
    for segment in found.segments():
        print(f"  {STEPS[segment.label]:6} frames {segment.start:2} to {segment.stop - 1:2}")
    j = int(np.flatnonzero(found.dropped_x)[-1])
    print(f"\n  Why was frame {j} dropped?  {found.explain(j)}")


if __name__ == "__main__":
    main()

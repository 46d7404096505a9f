"""Settings of the experiments with orders."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reproduction.common import experiment
from reproduction.orders import PARTS


@dataclass(frozen=True)
class Settings(experiment.Settings):
    """The settings of this experiment, in addition to those that all experiments share.

    parts : experiments to run.   noises : noise levels of inference.   tested, tuned : recordings per seed there.
    percentiles, factors : drop costs to choose from, of frames and of steps (as multiples of that of a frame).
    trained, judged : recordings to train a linear map on, and to test it on.
    most_nodes : skip recipes with larger graphs.   freedom : how far the steps of `tmnist-steps` move, in positions.
    digit_epochs : epochs of training on digits.   mnist, encoder : files, see `python -m reproduction steps`.
    small : use tiny data, for a smoke test.
    """

    seeds: int = 5
    epochs: int = 6
    batch: int = 1
    lr: float = 5e-3
    percentiles: tuple[float, ...] = (9.0, 13.0, 18.0, 25.0, 35.0, 45.0, 55.0)
    clips: int = 90
    parts: tuple[str, ...] = PARTS
    noises: tuple[float, ...] = (1.5, 3.0, 4.5)
    tested: int = 60
    tuned: int = 20
    factors: tuple[float, ...] = (0.25, 0.5, 1.0, 3.0, 10.0)
    trained: int = 60
    judged: int = 100
    most_nodes: int | None = None
    freedom: float = 2.0
    digit_epochs: int = 10
    mnist: str | None = None
    encoder: str | None = None
    small: bool = False

    def sizes(self) -> list[object]:
        """The settings that every training depends on."""
        return [*super().sizes(), self.trained, self.judged, self.most_nodes]

    def quick(self) -> Settings:
        """A version that runs in seconds, as a smoke test."""
        return replace(self, seeds=2, epochs=2, percentiles=(18.0, 35.0), clips=24, noises=(1.5,), tested=6, tuned=3,
                       factors=(0.5,), trained=5, judged=5, digit_epochs=1, small=True)  # fmt: skip

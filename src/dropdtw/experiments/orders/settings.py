"""How much of the experiments with orders to run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dropdtw.experiments.common import experiment
from dropdtw.experiments.orders import PARTS


@dataclass(frozen=True)
class Settings(experiment.Settings):
    """The size of the experiment, in addition to the settings that all experiments share.

    parts : which experiments.   noises : levels of inference.   tested, tuned : recordings of a seed in inference.
    percentiles, factors : drop costs to choose among, of frames and of steps (in drop costs of a frame).
    trained, judged : recordings to train a linear map on, and to test it.
    most_nodes : leaves out recipes whose graph has more.   freedom : of the steps of `tmnist-steps`, in places.
    digit_epochs : of training on digits.   mnist, encoder : files of the digits, see `dropdtw reproduce steps`.
    small : tiny data, to see that everything works.
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
        """What every training depends on."""
        return [*super().sizes(), self.trained, self.judged, self.most_nodes]

    def quick(self) -> Settings:
        """The same in seconds, to see that everything works."""
        return replace(self, seeds=2, epochs=2, percentiles=(18.0, 35.0), clips=24, noises=(1.5,), tested=6, tuned=3,
                       factors=(0.5,), trained=5, judged=5, digit_epochs=1, small=True)  # fmt: skip

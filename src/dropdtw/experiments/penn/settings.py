"""How much of representation learning to run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dropdtw.experiments.common import experiment


@dataclass(frozen=True)
class Settings(experiment.Settings):
    """The size of the experiment, in addition to the settings that all experiments share.

    levels : shares of outliers.   share_of : "mixed", a share of all frames of Ŷ are outliers; or "own", as many
    outliers as a share of Y's own frames.   test_pairs : of each action, to evaluate on.
    temperatures, drop_temperatures : to choose among, the first for losses without drops, the others with percentiles.
    images : the side of images to train on instead of poses, 0 for poses.
    """

    percentiles: tuple[float, ...] = (10.0, 30.0, 70.0)
    levels: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    share_of: str = "mixed"
    test_pairs: int = 200
    temperatures: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
    drop_temperatures: tuple[float, ...] = (0.1, 0.2)
    images: int = 0

    def sizes(self) -> list[object]:
        """What every training depends on."""
        return [*super().sizes(), self.test_pairs, self.share_of]

    def quick(self) -> Settings:
        """The same in seconds, to see that everything works."""
        return replace(self, seeds=2, levels=(0.0, 0.5), epochs=2, pairs=64, batch=16, test_pairs=6,
                       temperatures=(0.1,), percentiles=(10.0,), drop_temperatures=(0.1,), clips=10)  # fmt: skip

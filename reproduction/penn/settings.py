"""Settings of representation learning."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reproduction.common import experiment


@dataclass(frozen=True)
class Settings(experiment.Settings):
    """The settings of this experiment, in addition to those that all experiments share.

    levels : shares of outliers.   share_of : what a share refers to: "mixed", all frames of Ŷ; or "own", the number of
    Y's own frames.   test_pairs : pairs of test videos per action.
    temperatures, drop_temperatures : values to choose from, for losses without drops and with drops.
    images : side of square images to train on, or 0 to train on poses.
    left_out : actions that are not used.   stride : τ is computed on every such frame.
    """

    percentiles: tuple[float, ...] = (10.0, 30.0, 70.0)
    levels: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    share_of: str = "mixed"
    test_pairs: int = 200
    temperatures: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
    drop_temperatures: tuple[float, ...] = (0.1, 0.2)
    images: int = 0
    left_out: tuple[str, ...] = ()
    stride: int = 1

    def authors(self) -> Settings:
        """The protocol of earlier work and of the paper: 13 actions, every fifth frame, nothing tuned."""
        return replace(self, left_out=("jump_rope", "strum_guitar"), stride=5, temperatures=(0.1,),
                       percentiles=(30.0,), drop_temperatures=(0.1,))  # fmt: skip

    def sizes(self) -> list[object]:
        """The settings that every training depends on."""
        return [*super().sizes(), self.test_pairs, self.share_of, self.stride]

    def quick(self) -> Settings:
        """A version that runs in seconds, as a smoke test."""
        return replace(self, seeds=2, levels=(0.0, 0.5), epochs=2, pairs=64, batch=16, test_pairs=6,
                       temperatures=(0.1,), percentiles=(10.0,), drop_temperatures=(0.1,), clips=10)  # fmt: skip

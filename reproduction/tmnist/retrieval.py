"""Retrieval on TMNIST (paper Section 4.1.1, Fig. 3a): find the whole trajectory that a partial, noisy one belongs to.

Queries are the clips of TMNIST-part with a share of frames blurred. The alignment cost ranks the database, TMNIST-full.
The drop costs of each method are tuned on separate sets, once for all noise levels, because the noise of a query is
unknown in practice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import torch
from torch import Tensor

from dropdtw import metrics
from dropdtw.costs import cosine
from dropdtw.files.progress import Progress, reporter
from dropdtw.problem.inputs import Array
from dropdtw.tables.methods import METHODS
from dropdtw.torch import drop_dtw
from reproduction.common.pools import Videos

LEVELS = tuple(k / 10 for k in range(10))
"""Shares of blurred frames."""

CONSTANTS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
PERCENTILES = (1.0, 2.0, 5.0, 10.0, 20.0)


@dataclass(frozen=True)
class Setting:
    """The options of a method: drop costs of database and query frames, or a threshold.

    offset : subtracted from the match costs so that good matches are negative, as Smith–Waterman needs.
    percentile : instead of `drop_z`, the drop cost of a query frame is this percentile of its match costs over the
        whole database. A frame that resembles everything, as blurred ones do, is then cheap to drop.
    """

    drop_x: float | None = None
    drop_z: float | None = None
    threshold: float | None = None
    percentile: float | None = None
    offset: float | None = None

    def __str__(self) -> str:
        parts = {"d_x": self.drop_x, "d_z": self.drop_z, "ε": self.threshold, "offset": self.offset}
        parts["d_z = percentile"] = self.percentile
        return ", ".join(f"{name} {value:g}" for name, value in parts.items() if value is not None) or "–"


@dataclass(frozen=True)
class Row:
    """A row of the table: a method and its candidate settings."""

    name: str
    method: str
    settings: tuple[Setting, ...]


def rows() -> list[Row]:
    """Drop-DTW three times (one constant as in the paper, two constants, and a percentile), and every other method.

    Step patterns are excluded, because some of them require similar lengths. Methods with their own match cost are
    excluded too.
    """
    one = tuple(Setting(d, d) for d in CONSTANTS)
    two = tuple(Setting(x, z) for x, z in product(CONSTANTS, CONSTANTS))
    percentile = tuple(Setting(x, percentile=p) for x, p in product(CONSTANTS, PERCENTILES))
    found = [
        Row("Drop-DTW, one constant", "drop_dtw", one),
        Row("Drop-DTW, two constants", "drop_dtw", two),
        Row("Drop-DTW, percentile", "drop_dtw", percentile),
    ]
    for name, method in METHODS.items():
        if name in ("drop_dtw", "drop_dtw_paper"):  # with a hard minimum both are equal
            continue
        if method.fixes_moves or method.match is not None or method.takes_ids:
            continue
        if method.takes_threshold:
            settings = tuple(Setting(threshold=t) for t in CONSTANTS)
        elif name == "smith_waterman":
            settings = tuple(Setting(d, d, offset=o) for d, o in product(CONSTANTS, CONSTANTS))
        else:
            settings = two if method.takes_drops else (Setting(),)
        found.append(Row(name, name, settings))
    return found


@dataclass(frozen=True, eq=False)
class Queries:
    """The match costs of all queries and all videos, as one padded batch (n · m, K, N)."""

    C: Tensor
    z_lengths: Tensor
    x_lengths: Tensor
    shape: tuple[int, int]

    @classmethod
    def of(cls, queries: Sequence[Array], database: Sequence[Array]) -> Queries:
        """Compute the cosine costs of all query frames and database frames."""
        z, x = (np.array([len(clip) for clip in clips]) for clips in (queries, database))
        costs = cosine(np.concatenate(queries), np.concatenate(database))
        C = np.zeros((len(z), len(x), z.max(), x.max()), np.float32)
        for a, strip in enumerate(np.split(costs, np.cumsum(z)[:-1])):
            for b, block in enumerate(np.split(strip, np.cumsum(x)[:-1], axis=1)):
                C[a, b, : len(block), : x[b]] = block
        return cls(
            torch.from_numpy(C).flatten(0, 1),
            torch.from_numpy(np.repeat(z, len(x))),
            torch.from_numpy(np.tile(x, len(z))),
            (len(z), len(x)),
        )

    @cached_property
    def sorted_costs(self) -> Tensor:
        """The sorted costs of each query frame, (n, K, all frames of the database)."""
        n, m = self.shape
        K, N = self.C.shape[1:]
        inside = torch.arange(N) < self.x_lengths[:m, None]
        return self.C.view(n, m, K, N).movedim(1, 2)[:, :, inside].sort(dim=2).values

    def drop_z(self, percentile: float) -> Tensor:
        """A percentile of the costs of each query frame over the whole database, (n · m, K)."""
        n, m = self.shape
        rank = round(percentile / 100 * (self.sorted_costs.shape[2] - 1))
        costs = self.sorted_costs[:, :, rank]
        return costs[:, None].expand(n, m, -1).flatten(0, 1)

    def values(self, method: str, setting: Setting) -> Array:
        """The alignment cost of every query and video, (n, m)."""
        drop_z = setting.drop_z if setting.percentile is None else self.drop_z(setting.percentile)
        found = drop_dtw(
            self.C if setting.offset is None else self.C - setting.offset,
            setting.drop_x,
            drop_z,
            z_lengths=self.z_lengths,
            x_lengths=self.x_lengths,
            method=method,
            threshold=setting.threshold,
            reducer="hard",
        )
        return np.asarray(found.view(self.shape).numpy())

    def recall(self, method: str, setting: Setting) -> float:
        """Recall@1: the share of queries whose own class is strictly nearest."""
        # Round, because sums of equal drop costs tie only up to rounding; a tie is a miss.
        return metrics.recall_at_k(self.values(method, setting).round(5), np.arange(self.shape[0]))


def queries(videos: Videos, level: float, seed: Sequence[int]) -> Queries:
    """Build all queries of a set at a noise level."""
    clips, _ = videos.noisy(level, np.random.default_rng(seed))
    return Queries.of(clips, videos.full)


@dataclass(frozen=True, eq=False)
class Retrieval:
    """The result: the noise levels, and the chosen setting and Recall@1 (sets, levels) of each row."""

    levels: tuple[float, ...]
    chosen: dict[str, Setting]
    recall: dict[str, Array]


def run(
    test: Sequence[Videos],
    validation: Sequence[Videos],
    *,
    levels: Sequence[float] = LEVELS,
    table: Sequence[Row] | None = None,
    seed: int = 0,
    progress: Progress = None,
) -> Retrieval:
    """Tune the setting of each row on the validation sets, by mean recall over every second level; then test."""
    table = rows() if table is None else table
    tried = [(row, setting) for row in table for setting in row.settings]
    trials = [(v, k) for v in range(len(validation)) for k in range(0, len(levels), 2)]
    report = reporter("retrieval", progress)
    total = len(trials) * len(tried) + len(test) * len(levels) * len(table)
    done = 0
    scores = np.zeros(len(tried))
    for v, k in trials:
        these = queries(validation[v], levels[k], [seed, 1, v, k])
        for s, (row, setting) in enumerate(tried):
            scores[s] += these.recall(row.method, setting)
            done += 1
            report(done, total)
    chosen: dict[str, Setting] = {}
    for row in table:
        own = {setting: scores[s] for s, (other, setting) in enumerate(tried) if other is row}
        chosen[row.name] = max(own, key=lambda setting: own[setting])
    recall = {row.name: np.zeros((len(test), len(levels))) for row in table}
    for v, videos in enumerate(test):
        for k, level in enumerate(levels):
            these = queries(videos, level, [seed, 0, v, k])
            for row in table:
                recall[row.name][v, k] = these.recall(row.method, chosen[row.name])
                done += 1
                report(done, total)
    return Retrieval(tuple(levels), chosen, recall)

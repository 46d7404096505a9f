"""Missing elements: those with NaN are deleted before anything is computed, and results use the caller's indices.

The result is exactly that of the sequences without these elements, so percentiles, windows and runs of drops ignore
them. `without_missing` deletes them, and `Kept` maps the indices of the remaining elements back to the caller's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dropdtw.costs import MatchCost, Softmax
from dropdtw.drops import PerElement, Rule
from dropdtw.problem.errors import OptionError
from dropdtw.problem.inputs import Array, as_drop_costs, as_sequence, paired, same_columns
from dropdtw.problem.spec import Spec

OR_DROP: Final = ", or give missing='drop' to leave out those with NaN"
"""Advice that functions with this option add to their error messages."""


Places = tuple[Array, int]
"""The indices of the elements that are present, and the length of the whole sequence."""


class Kept(NamedTuple):
    """Which elements of Z and X are present if others are missing.

    z, x : (K',) and (N',) their indices in the caller's sequences, ascending.
    shape : (K, N), the lengths of the caller's sequences.

    >>> kept = Kept(np.array([0, 1]), np.array([0, 2, 3]), (2, 5))
    >>> kept.missing_x
    array([False,  True, False, False,  True])
    >>> kept.interval(1, 3)
    (2, 4)
    """

    z: Array
    x: Array
    shape: tuple[int, int]

    @classmethod
    def of(cls, Z: Array, z: Places | None, X: Array, x: Places | None) -> Kept | None:
        """Combine the results of `present` for two sequences; None if nothing is missing."""
        if z is None and x is None:
            return None
        (of_z, K), (of_x, N) = (
            (np.arange(len(A)), len(A)) if there is None else there for A, there in ((Z, z), (X, x))
        )
        return cls(of_z, of_x, (K, N))

    @property
    def missing_z(self) -> Array:
        """(K,) bool: whether z_i is missing."""
        return ~np.isin(np.arange(self.shape[0]), self.z)

    @property
    def missing_x(self) -> Array:
        """(N,) bool: whether x_j is missing."""
        return ~np.isin(np.arange(self.shape[1]), self.x)

    def interval(self, start: int, stop: int) -> tuple[int, int]:
        """Convert an interval [start, stop) of kept x to the caller's indices."""
        return int(self.x[start]), int(self.x[stop - 1]) + 1

    def spread(self, values: Array, fill: float, *sides: str) -> Array:
        """Expand values of the kept elements, one axis per side ("z", "x"), with `fill` for the missing ones."""
        full = np.full([self.shape[side == "x"] for side in sides], fill, values.dtype)
        full[np.ix_(*(getattr(self, side) for side in sides))] = values
        return full

    def z_of(self, indices: Array) -> Array:
        """Convert indices of kept z to the caller's indices; −1 stays."""
        return np.asarray(np.where(indices < 0, -1, self.z[indices]))

    def to_z(self, indices: Array) -> Array:
        """Convert the caller's indices of z to indices of kept z; −1 stays."""
        return np.asarray(np.where(indices < 0, -1, np.searchsorted(self.z, indices)))


def without_missing(spec: Spec, Z: npt.ArrayLike, X: npt.ArrayLike) -> tuple[Spec, Array, Array, Kept | None]:
    """Return the request and both sequences without the missing elements, and which elements are present.

    The last of the four is None if nothing is missing.
    """
    Z, X = same_columns(Z, X)
    (A, z), (B, x) = present(Z, "Z", spec.missing), present(X, "X", spec.missing)
    A, B = paired(A, B)
    kept = Kept.of(A, z, B, x)
    return (spec, A, B, None) if kept is None else (restricted(spec, kept), A, B, kept)


def restricted(spec: Spec, kept: Kept) -> Spec:
    """Restrict a request to the kept elements: drop costs per element, ids, the mask and the order."""
    if spec.ids is not None and len(spec.ids) != kept.shape[0]:
        raise OptionError("ids", list(spec.ids), "give one per element of Z", f", but Z has {kept.shape[0]} elements")
    anchors = None
    if spec.anchors is not None:
        for i, j in spec.anchors:
            if i < kept.shape[0] and j < kept.shape[1] and not (i in kept.z and j in kept.x):
                raise OptionError("anchors", (i, j), "remove it", f", but z_{i} or x_{j} is missing")
        i, j = np.array(spec.anchors).T
        anchors = tuple(zip(np.searchsorted(kept.z, i).tolist(), np.searchsorted(kept.x, j).tolist(), strict=True))
    order = spec.order
    if order is not None and len(kept.z) < kept.shape[0]:
        order.check_steps(kept.shape[0])
        if not order.is_plain:
            lost = int(np.flatnonzero(kept.missing_z)[0])
            raise ValueError(
                f"Z has NaN in element {lost}, a step that the order names; fill it in, or leave it out of Z and the "
                "order"
            )
        order = None
    return replace(
        spec,
        drop_x=_rule_of_kept(spec.drop_x, "drop_x", kept.x, kept.shape[1], "x_j"),
        drop_z=_rule_of_kept(spec.drop_z, "drop_z", kept.z, kept.shape[0], "z_i"),
        match=_names_of_kept(spec.match, kept),
        order=order,
        mask=_mask_of_kept(spec.mask, kept),
        anchors=anchors,
        ids=None if spec.ids is None else tuple(spec.ids[i] for i in kept.z),
    )


def present(values: npt.ArrayLike, name: str, missing: str | None) -> tuple[Array, Places | None]:
    """Check a sequence and delete its missing elements. Also return the indices of the rest; None if none is missing.

    missing : "drop", or None to raise on NaN.
    """
    if missing is None:
        return as_sequence(values, name, or_else=OR_DROP), None
    A = as_sequence(values, name, holes=True)
    holes = np.isnan(A).any(axis=1)
    if not holes.any():
        return A, None
    there = np.flatnonzero(~holes)
    if not len(there):
        remedy = "remove this sequence" if name.endswith("]") else "give at least one complete element"
        raise ValueError(f"every element of {name} has NaN, so there is nothing to align; {remedy}")
    return A[there], (there, len(A))


def reads_places(spec: Spec) -> bool:
    """Whether a request has arguments per element: drop costs, or ids."""
    each = isinstance(spec.drop_x, PerElement) or isinstance(spec.drop_z, PerElement)
    return each or spec.ids is not None or (isinstance(spec.match, Softmax) and spec.match.ids is not None)


def _rule_of_kept(rule: Rule | None, name: str, kept: Array, length: int, element: str) -> Rule | None:
    if not isinstance(rule, PerElement):
        return rule
    return PerElement(as_drop_costs(rule.values, name, length, element)[kept])


def _mask_of_kept(mask: Array | None, kept: Kept) -> Array | None:
    if mask is None:
        return None
    if mask.shape != kept.shape:
        K, N = kept.shape
        raise ValueError(
            f"mask has shape {mask.shape}, but there are {K} × {N} pairs; give one boolean per pair, including pairs "
            "with missing elements"
        )
    return np.asarray(mask[np.ix_(kept.z, kept.x)])


def _names_of_kept(match: MatchCost, kept: Kept) -> MatchCost:
    if not isinstance(match, Softmax) or match.ids is None:
        return match
    if len(match.ids) != kept.shape[0]:
        raise ValueError(
            f"ids has {len(match.ids)} entries, but Z has {kept.shape[0]} elements; give one id per z_i, missing or not"
        )
    return replace(match, ids=tuple(match.ids[i] for i in kept.z))

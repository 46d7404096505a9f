"""Batches of sequence pairs for the losses: padded tensors with lengths, or lists of sequences of different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from dropdtw.problem.inputs import Array
from dropdtw.torch import kernels
from dropdtw.torch.costs import first_of_kind
from dropdtw.torch.functional import Batch, Lengths
from dropdtw.torch.masks import Mask, front
from dropdtw.torch.ops import can_look

Ids = Tensor | Array | Sequence[Tensor] | Sequence[Array] | Sequence[Sequence[int]] | None


class Pairs:
    """B pairs of sequences, Z (B, K, d) and X (B, N, d). Losses that share the pairs look for equal z only once.

    given_z, given_x : the sequences as given; their padding may hold anything.
    z_lengths, x_lengths : (B,), or None if that side has no padding.
    names : (B, K) integers that identify the z, or None: equal rows are the same z.
    x_places : (B, N) position of each x in the caller's batch, or None if it has not moved.
    items : the items of the caller's batch that the Z and the X come from, each (B,); None if each comes from its own.
    x_whole : (B,) lengths of the X as given, with masked frames; None if all have the size of the batch.
    strict : whether an item whose lengths no alignment fits raises an error, where that can be seen.
    shared : cache of intermediate results that losses on CUDA share.
    """

    def __init__(
        self,
        Z: Tensor,
        X: Tensor,
        z_lengths: Tensor | None,
        x_lengths: Tensor | None,
        ids: Tensor | None,
        x_places: Tensor | None = None,
        *,
        clean: tuple[bool, bool] = (True, True),
    ) -> None:
        self.given_z, self.given_x = Z, X
        self.z_lengths, self.x_lengths = z_lengths, x_lengths
        self.names, self.x_places = ids, x_places
        self.items: tuple[Tensor, Tensor] | None = None
        self.strict = True
        self.x_whole = x_lengths
        self.shared: Any = None
        self._Z = Z if clean[0] or z_lengths is None else None
        self._X = X if clean[1] or x_lengths is None else None
        self._ids: Tensor | None = None
        self._first: Tensor | None = None

    @property
    def Z(self) -> Tensor:
        """Z with 0 in the padding."""
        if self._Z is None:
            self._Z = _cleaned(self.given_z, self.z_lengths)
        return self._Z

    @property
    def X(self) -> Tensor:
        """X with 0 in the padding."""
        if self._X is None:
            self._X = _cleaned(self.given_x, self.x_lengths)
        return self._X

    @property
    def ids(self) -> Tensor | None:
        """The names of the z as integers ≥ 0. Only their equality matters; elsewhere, −1 marks padding."""
        if self._ids is None and self.names is not None:
            self._ids = self.names - self.names.min()
        return self._ids

    def first_of_kind(self) -> Tensor:
        """(B, K): for each z, the index of the first z of its kind in its item; −1 in the padding."""
        if self._first is None:
            self._first = torch.where(real(self.Z, self.z_lengths), first_of_kind(self.Z, self.ids), -1)
        return self._first

    def turned(self) -> Pairs:
        """The pairs (X, Z)."""
        found = self._of(1, 0)
        found.items = None if self.items is None else self.items[::-1]
        return found

    def alone(self) -> tuple[Pairs, Pairs]:
        """The pairs (Z, Z) and (X, X)."""
        return self._of(0, 0), self._of(1, 1)

    def _of(self, first: int, second: int) -> Pairs:
        given, lengths = (self.given_z, self.given_x), (self.z_lengths, self.x_lengths)
        clean = self._Z is self.given_z, self._X is self.given_x
        return Pairs(
            given[first], given[second], lengths[first], lengths[second], None, clean=(clean[first], clean[second])
        )

    def select(self, z: Tensor, x: Tensor) -> Pairs:
        """The pairs of the z[b]-th sequence of Z and the x[b]-th of X. An alignment need not fit them."""
        found = Pairs(
            self.given_z[z],
            self.given_x[x],
            None if self.z_lengths is None else self.z_lengths[z],
            None if self.x_lengths is None else self.x_lengths[x],
            None if self.names is None else self.names[z],
            None if self.x_places is None else self.x_places[x],
            clean=(self._Z is self.given_z, self._X is self.given_x),
        )
        found.items, found.strict = (z, x), False
        return found

    def of_items(self, values: Any, side: str, dims: int) -> Any:
        """Select the entries of these items from a tensor that has one per item, (B, …) with `dims` dimensions.

        side : "z" or "x", whose items the entries belong to. Everything else is returned unchanged.
        """
        if self.items is None or not isinstance(values, Tensor) or values.ndim != dims or len(values) == 1:
            return values
        return values[self.items["zx".index(side)]]


def _cleaned(A: Tensor, lengths: Tensor | None) -> Tensor:
    if lengths is not None and kernels.run_on(A) and not torch.compiler.is_compiling():
        return kernels.real_part(A, lengths)
    return torch.where(real(A, lengths)[..., None], A, 0.0)


def pairs(
    Z: Batch,
    X: Batch,
    z_lengths: Lengths = None,
    x_lengths: Lengths = None,
    ids: Ids = None,
    name: str = "Z",
    x_mask: Mask = None,
) -> Pairs:
    """Check a batch and lay it out. Half precision becomes float32, and the contents of the padding are ignored.

    Several losses can share one batch: each has a method `values` that takes such pairs.

    name : the caller's name for Z, for error messages.   x_mask : False where an x is missing; the others move forward.

    >>> from dropdtw.torch import ClusteringLoss, DropDTWLoss
    >>> p = pairs(torch.eye(2)[None], torch.eye(2)[None])
    >>> DropDTWLoss(1.0, reducer="hard", normalize="x").values(p) + ClusteringLoss(gamma=0.01).values(p)
    tensor([0.3133])
    """
    Z, z_lengths, z_clean = padded(Z, z_lengths, name)
    X, x_lengths, x_clean = padded(X, x_lengths, "X")
    places, whole = None, x_lengths
    if x_mask is not None:
        found = front(x_mask, X.shape[0], X.shape[1], x_lengths, X.device)
        X, x_lengths, places, x_clean = found.rows(X), found.lengths, found.places, False
    if len(Z) != len(X):
        raise ValueError(f"{name} has {len(Z)} items and X has {len(X)}; give one sequence of each per item")
    if Z.shape[2] != X.shape[2]:
        raise ValueError(f"{name} has {Z.shape[2]} features and X has {X.shape[2]}; both need the same number")
    if Z.device != X.device:
        raise ValueError(f"{name} is on {Z.device} and X is on {X.device}; move them to the same device")
    dtype = torch.promote_types(Z.dtype, X.dtype)
    named = None if ids is None else _ids(ids, Z, z_lengths, "ids" if name == "Z" else f"{name}_ids")
    made = Pairs(Z.to(dtype), X.to(dtype), z_lengths, x_lengths, named, places, clean=(z_clean, x_clean))
    made.x_whole = whole
    if can_look(X):
        _refuse_not_finite(made.Z, name)
        _refuse_not_finite(made.X, "X")
    return made


def padded(A: Batch, lengths: Lengths, name: str) -> tuple[Tensor, Tensor | None, bool]:
    """Return a batch (B, L, d) in at least single precision, its lengths, and whether its padding is 0.

    The lengths are None if nothing is padded.

    name : the caller's name for the batch, such as "Z" or "X", for error messages.
    """
    clean = not isinstance(A, Tensor)
    if not isinstance(A, Tensor):
        if lengths is not None:
            raise ValueError(f"{name.lower()}_lengths belong to a padded batch, but {name} is a list; leave them out")
        if not isinstance(A, Sequence) or not A or any(not _fits(a, A[0]) for a in A):
            raise ValueError(
                f"{name} is a {type(A).__name__}, but not of sequences; give a tensor (B, length, d), or a list of "
                "at least one tensor (length, d), all with the same d"
            )
        each = [len(a) for a in A]
        if min(each) < 1:
            raise ValueError(f"{name}[{each.index(0)}] is empty; give at least one element")
        lengths = None if min(each) == max(each) else each
        A = pad_sequence(list(A), batch_first=True)
    if A.ndim != 3 or 0 in A.shape:
        raise ValueError(
            f"{name} has shape {tuple(A.shape)}; give a batch (B, length, d) with no dimension of size 0, or a list of "
            f"sequences. For a single sequence, pass {name}[None]"
        )
    if not A.is_floating_point():
        raise ValueError(f"{name} has dtype {A.dtype}; give floating-point features, for example {name}.float()")
    if A.dtype in (torch.float16, torch.bfloat16):
        A = A.float()
    if lengths is None:
        return A, None, True
    found = torch.as_tensor(lengths)
    if found.shape != A.shape[:1] or found.is_floating_point() or found.is_complex() or found.dtype == torch.bool:
        raise ValueError(
            f"{name.lower()}_lengths has shape {tuple(found.shape)} and dtype {found.dtype}; "
            f"give {len(A)} whole numbers, one per item"
        )
    if can_look(found) and not 1 <= int(found.min()) <= int(found.max()) <= A.shape[1]:
        raise ValueError(
            f"{name.lower()}_lengths range from {int(found.min())} to {int(found.max())}, but {name} has room for "
            f"{A.shape[1]}; give lengths from 1 to {A.shape[1]}"
        )
    found = found.to(A.device, torch.int64, non_blocking=True)
    return A, found, clean


def _refuse_not_finite(A: Tensor, name: str) -> None:
    if not torch.isfinite(A.detach().sum()):  # one cheap pass; the sum may also overflow, so check again
        bad = (~torch.isfinite(A.detach()).all(-1)).nonzero()
        if len(bad):
            b, i = bad[0].tolist()
            masked = ", or leave them out by x_mask" if name == "X" else ""
            raise ValueError(
                f"{name}[{b}] has NaN or infinity in element {i}; remove such elements or fill them in{masked}"
            )


def refuse_overflow(found: Tensor) -> None:
    """Raise if a value computed from products of finite features is not finite."""
    if can_look(found) and not torch.isfinite(found.detach()).all():
        wider = ", or give them as float64" if found.dtype == torch.float32 else ""
        raise ValueError(f"products z·x overflow {str(found.dtype)[6:]}; scale the features down{wider}")


def _fits(a: object, first: object) -> bool:
    return isinstance(a, Tensor) and isinstance(first, Tensor) and a.ndim == 2 and a.shape[1:] == first.shape[1:]


def real(A: Tensor, lengths: Tensor | None) -> Tensor:
    """(B, L): which elements of a batch (B, L, d) are not padding; (1, L) if nothing is padded."""
    place = torch.arange(A.shape[1], device=A.device)
    return torch.ones_like(place, dtype=torch.bool)[None] if lengths is None else place < lengths[:, None]


def count(A: Tensor, lengths: Tensor | None) -> Tensor:
    """Count the elements of each item of a batch (B, L, d), as floating-point numbers that broadcast to (B,)."""
    return A.new_full((1,), A.shape[1]) if lengths is None else lengths.to(A.dtype)


def _ids(ids: Any, Z: Tensor, lengths: Tensor | None, name: str) -> Tensor:
    B, K, _ = Z.shape
    found: Tensor | None = ids if isinstance(ids, Tensor) else None
    if isinstance(ids, np.ndarray) and ids.ndim == 2:
        found = torch.as_tensor(ids)
    if found is not None:
        arrived = f"has shape {tuple(found.shape)} and dtype {found.dtype}"
    else:
        try:
            rows = [torch.as_tensor(row) for row in ids]
        except (ValueError, TypeError, RuntimeError) as error:
            raise ValueError(f"{name} has values that are no numbers ({error}); number the steps first") from None
        arrived = f"has rows of {', '.join(f'{tuple(row.shape)} ({row.dtype})' for row in rows) or 'nothing'}"
        expected = [K] * B if lengths is None else lengths.tolist()
        fits = len(rows) == B and all(row.shape in ((n,), (K,)) for row, n in zip(rows, expected, strict=True))
        found = pad_sequence(rows, batch_first=True) if fits else torch.empty(0)
        found = torch.nn.functional.pad(found, (0, K - found.shape[-1])) if fits else found
    if found.shape != (B, K) or found.is_floating_point() or found.is_complex():
        raise ValueError(
            f"{name} {arrived}, but there are {B} sequences of at most {K} z_i; "
            "give one whole number per z_i, as a tensor (B, K) or a list of one row per item"
        )
    return found.to(Z.device, torch.int64)

"""The computations behind a page. Each answer depends only on the request and the loaded data, which never change."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np

import dropdtw
from dropdtw import costs, drops, palette
from dropdtw.explore import order, talks, view
from dropdtw.explore.load import Data
from dropdtw.explore.settings import Choice, PageSettings
from dropdtw.files import formats
from dropdtw.problem.clock import clocks_of
from dropdtw.problem.errors import OptionError
from dropdtw.problem.inputs import Array
from dropdtw.problem.options import Options
from dropdtw.problem.problem import Problem
from dropdtw.results.alignment import Alignment
from dropdtw.results.posterior import Posterior, usual_gamma
from dropdtw.tables.methods import METHODS, Method

DRAWN_COSTS: Final = 1 << 22
DRAWN_POSTERIOR: Final = 1 << 20
"""Maximum number of cells sent to the page; larger matrices are pooled into blocks."""

REMEMBERED: Final = 1 << 24
"""Number of cells of recent results to cache, so that explaining a cell needs no new alignment."""

T = TypeVar("T")


class Memo:
    """A thread-safe cache of the `most` most recently used results."""

    def __init__(self, most: int) -> None:
        self._most, self._held, self._lock = most, OrderedDict[Hashable, Any](), threading.Lock()

    def __call__(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result for `key`, computed on a miss."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]  # type: ignore[no-any-return]
        made = make()  # outside the lock, so other threads go on; duplicate work gives equal results
        with self._lock:
            self._held[key] = made
            while len(self._held) > self._most:
                self._held.popitem(last=False)
        return made


class Session:
    """Loaded data and the requests about them."""

    def __init__(self, data: Data, first: PageSettings | None = None) -> None:
        self.data = data
        K, N = data.shape
        self._matrices, self._found = Memo(3), Memo(max(1, min(32, REMEMBERED // (K * N))))
        self.matches: list[str] = [] if data.Z is None else list(costs.MATCH_COSTS)
        self.suggested: dict[str, Any] | None = None  # confidence in the initial drop cost
        self.first = first or self.opening()
        if self.first.match is not None and self.first.match not in self.matches:
            self.matches.append(self.first.match)

    # --- data -------------------------------------------------------------------------------------------------

    def costs(self, match: str | None) -> Array:
        """The match costs C (K, N) for the match cost that the page chose."""
        if self.data.C is not None:
            if match is not None:
                raise ValueError(f"match is {match!r}, but only match costs were loaded; send null")
            return self.data.C
        if match not in self.matches:
            raise ValueError(f"match is {match!r}; choose one of {', '.join(self.matches)}")
        Z, X = self.data.Z, self.data.X
        assert Z is not None
        assert X is not None
        return self._matrices(match, lambda: costs.resolve(match, Z.shape[1]).cost(Z, X))

    def opening(self, match: str | None = None, method: str | None = None) -> PageSettings:
        """The initial settings: those stored with the data if any, otherwise a suggested drop cost."""
        data = self.data
        match = self._offer(match)
        name = method or data.method or "drop_dtw"
        self._check_method(name)
        entry, C = METHODS[name], self.costs(match)
        flags: dict[str, Any] = {} if entry.one_to_one or entry.fixes_moves else dict(data.begin)
        settings = PageSettings(match=match, method=name, gamma=_rounded(usual_gamma(C), 2), **flags)
        if entry.takes_warp:
            settings = replace(settings, warp=data.charges.warp)
        if entry.takes_threshold:
            return replace(settings, threshold=Choice("percentile", 30.0))
        if not entry.takes_drops:
            return settings
        if data.given:
            x, z = (_kind(data.given[side]) if side in data.given else Choice() for side in ("drop_x", "drop_z"))
            settings = replace(settings, drop_x=x, drop_z=z)
            if not entry.takes_opening:
                return settings
            open_x, open_z, _ = data.charges
            return replace(settings, open_x=open_x, open_z=open_z)
        if data.method is not None:  # the loaded alignment dropped nothing
            return settings
        found = dropdtw.suggest_drop(C, drop_z=entry.one_to_one, **flags)
        self.suggested = _suggestion(found)
        drop = Choice("constant", self.suggested["constant"])
        other = drop if entry.one_to_one else Choice()
        if data.skip is not None:
            other = Choice("constant", _rounded(data.skip * drop.value))
        return replace(settings, drop_x=drop, drop_z=other)

    def info(self) -> dict[str, Any]:
        """Everything the page needs before the first alignment."""
        data, (K, N), drawn = self.data, self.data.shape, self._order
        return {
            "title": data.title,
            "shape": [K, N],
            "matches": self.matches,
            "methods": {
                name: {
                    "summary": m.summary,
                    "drops": m.takes_drops,
                    "threshold": m.takes_threshold,
                    "opening": m.takes_opening,
                    "warp": m.takes_warp,
                    "one_to_one": m.one_to_one,
                    "fixes_moves": m.fixes_moves,
                }
                for name, m in self._methods.items()
            },
            "order": drawn,
            "given": [side for side, values in data.given.items() if _kind(values).kind == "given"],
            "settings": self.first.to_json(),
            "curves": self._curves,
            "truth": None if data.truth is None else data.truth.tolist(),
            "fps": data.fps,
            "names": list(data.names or (data.steps.names if data.steps else ())),
            "said": list(data.said),
            "talk": bool(data.reading),
            "times": list(data.times),
            "suggested": self.suggested,
            "palette": palette.schemes(),
            "note": self._note(),
        }

    def matrix(self, match: str | None) -> tuple[dict[str, Any], dict[str, Array]]:
        """The match costs to draw: their scale, and one byte per cell."""
        C = self.costs(match)
        levels, low, high = view.gray(C, DRAWN_COSTS)
        header = {
            "rows": levels.shape[0],
            "columns": levels.shape[1],
            "low": low,
            "high": high,
            "gamma": _rounded(usual_gamma(C), 2),
            "histogram": view.histogram(C),
        }
        return header, {"levels": levels}

    # --- requests ---------------------------------------------------------------------------------------------

    def alignment(self, settings: PageSettings) -> Alignment:
        """The best alignment; the library's ValueError if there is none."""
        alike = replace(settings, gamma=None)  # an alignment does not depend on gamma
        return self._found(("alignment", alike), lambda: self.aligner(alike).solve(self.costs(settings.match)))

    def posterior(self, settings: PageSettings) -> Posterior:
        """The probabilities of all matches and drops."""
        if settings.gamma is None:
            raise ValueError("gamma is null; send a number > 0")
        return self._found(
            ("posterior", settings), lambda: self.aligner(settings).posterior(self.costs(settings.match))
        )

    def align(self, settings: PageSettings) -> tuple[dict[str, Any], dict[str, Array]]:
        """The alignment in the form that the page draws."""
        a = self.alignment(settings)
        given = a.solved().given
        header = {
            "cost": a.cost,
            "prices": {"drop_x": _price(given.drop_x), "drop_z": _price(given.drop_z)},
            "threshold": self._threshold(self.aligner(settings), settings.match),
            "agreement": None if self.data.truth is None else float((a.labels == self.data.truth).mean()),
            "code": self.code(settings),
        }
        arrays = {
            "pairs": a.pairs.astype("<i4"),
            "segments": np.array(a.segments(), "<i4").reshape(-1, 3),
            "dropped_x": a.dropped_x.astype(np.uint8),
            "dropped_z": a.dropped_z.astype(np.uint8),
        }
        if self._order is not None:
            arrays |= {"visits": np.array(a.visits, "<i4").reshape(-1, 3), "walk": np.unique(a.walk).astype("<i4")}
        return header, arrays

    def probabilities(self, settings: PageSettings) -> tuple[dict[str, Any], dict[str, Array]]:
        """The posterior in the form that the page draws: one byte per cell, 255 for probability 1."""
        p = self.posterior(settings)
        match = np.rint(np.clip(view.pooled(p.match, DRAWN_POSTERIOR, np.maximum), 0, 1) * 255).astype(np.uint8)
        header = {"rows": match.shape[0], "columns": match.shape[1], "entropy": p.entropy, "cost": p.cost}
        return header, {
            "match": match,
            "drop_x": np.clip(p.drop_x, 0, 1).astype("<f4"),
            "drop_z": np.clip(p.drop_z, 0, 1).astype("<f4"),
        }

    def explain(self, settings: PageSettings, i: int, j: int) -> dict[str, str]:
        """Explain a cell, its column and its row in words."""
        a = self.alignment(settings)
        p = None if settings.gamma is None else self.posterior(settings)
        C, problem = self.costs(settings.match), a.solved()
        price = float(C[i, j])
        matched = bool((a.pairs == (i, j)).all(axis=1).any())
        band = problem.given.band
        if not np.isfinite(price):
            cell = "this match is forbidden (+∞)"
        else:
            cheaper = float((price > C).mean())
            cell = f"match cost {price:.4g}, {cheaper:.0%} of all pairs are cheaper; {'' if matched else 'not '}matched"
        if band is not None and not band[0][i] <= j < band[1][i]:
            cell += "; outside the window"
        if p is not None:
            cell += f"; posterior {_share(p.match[i, j])}"
        about_x = str(a.explain(j)).removeprefix(f"x_{j} is ")
        about_z = str(a.explain(z=i)).removeprefix(f"z_{i} is ")
        if p is not None:
            about_x += f"; dropped with probability {_share(p.drop_x[j])}"
            about_z += f"; dropped with probability {_share(p.drop_z[i])}"
        if self.data.truth is not None:
            true = int(self.data.truth[j])
            about_x += f"; true match: {f'z_{true}' if true >= 0 else 'none'}"
        return {"cell": cell, "x": about_x, "z": about_z}

    def suggest(self, settings: PageSettings) -> dict[str, Any]:
        """Suggest a drop cost for these settings, with its confidence."""
        changed = settings.options(self.data.given).changed
        call = {name: changed[name] for name in SUGGESTING if name in changed}
        entry = METHODS.get(settings.method)
        z = settings.drop_z.kind != "none" or bool(entry and entry.one_to_one)
        found = dropdtw.suggest_drop(self.costs(settings.match), drop_z=z, **call)
        return _suggestion(found)

    def suggest_opening(self, settings: PageSettings) -> dict[str, float]:
        """Suggest opening costs for these settings, one for each side with drops."""
        free = self._order is not None and self._order["partial"]  # under a partial order, dropped z form no runs
        sides = ["x"] if settings.drop_x.kind != "none" else []
        sides += ["z"] if settings.drop_z.kind != "none" and not free else []
        aligner = self.aligner(settings).replace(**{f"open_{side}": "suggest" for side in sides})
        charges = Problem.of_costs(aligner.spec, self.costs(settings.match)).given.charges
        return {f"open_{side}": _rounded(getattr(charges, f"open_{side}")) for side in sides}

    def export(self, settings: PageSettings) -> dict[str, Any]:
        """The alignment in the form that `Alignment.from_dict` reads, with its `Aligner`."""
        a, data = self.alignment(settings), self.data
        clocks = clocks_of(a.shape, data.times or None, data.fps)
        content = formats.alignment_content(replace(a, clocks=clocks), ".json")
        return json.loads(content) | {"aligner": self.aligner(settings).to_dict()}  # type: ignore[no-any-return]

    def chapters(self, settings: PageSettings, kind: str) -> dict[str, str]:
        """The steps of a talk in the content of a file.   kind : one of `dropdtw.text.FORMATS`."""
        from dropdtw.text import Sentence, write_chapters

        data = self.data
        if not data.reading:
            raise ValueError("chapters are for steps and a talk; start the explorer with a list of steps and subtitles")
        talk = [Sentence(*each) for each in zip(data.times, data.stops, data.said, strict=True)]
        found = talks.chapters(settings, data, self.alignment(settings))
        return {"content": write_chapters(found, kind, talk, title=data.title)}

    def aligner(self, settings: PageSettings) -> dropdtw.Aligner:
        """The `Aligner` of these settings and of the loaded order; ValueError if there is none."""
        options = settings.options(self.data.given)
        extra = order.added(self.data.steps, options, self.costs(settings.match))
        return dropdtw.Aligner(**options.changed | extra)

    def opened(self, aligner: dropdtw.Aligner) -> PageSettings:
        """The settings that show an `Aligner`. Raises ValueError if the page cannot show it.

        Drop costs that are neither numbers nor percentiles become numbers, if they are the same for all elements. The
        posterior is shown if γ is not the default.
        """
        steps = self.data.steps
        if aligner.order is not None and (steps is None or steps.order != aligner.order):
            raise OptionError("order", aligner.order, "start the explorer with {order}", ", not the order of this page")
        match = self._offer(aligner.match)
        self._check_method(aligner.method)
        given = Problem.of_costs(aligner.spec, self.costs(match)).given
        numbers: dict[str, Any] = {
            name: _rounded(getattr(given.charges, name))
            for name in ("open_x", "open_z")
            if isinstance(getattr(aligner, name), str)
        }
        kept: dict[str, Any] = {}
        for name, optional in (("drop_x", ()), ("drop_z", () if steps is None else steps.optional)):
            value = getattr(aligner, name)
            if value is None or isinstance(value, int | float) or str(value).startswith("percentile:"):
                continue
            kept[name] = self._held(name, value, np.delete(getattr(given, name), list(optional)))
            numbers[name] = None
        if isinstance(aligner.threshold, str) and aligner.threshold == "suggest":
            numbers["threshold"] = self._threshold(aligner, match)
        return replace(PageSettings.of(Options(**aligner.changed | numbers | {"match": "auto"})), **kept, match=match)

    def code(self, settings: PageSettings) -> str:
        """Python code that reproduces the alignment, and the posterior if one is shown.

        For a talk, the code finds the steps and writes chapters.
        """
        if self.data.reading and (found := talks.code(settings, self.data)) is not None:
            return found
        aligner = self.aligner(settings)
        said = {name: repr(value) for name, value in aligner.changed.items()}
        if "order" in said:
            said["order"] = "order"
        for side in ("drop_x", "drop_z"):
            if getattr(settings, side).kind == "given":
                said[side] = self.data.given_code[side]
        if self.data.steps is not None and isinstance(aligner.drop_z, np.ndarray):
            said["drop_z"] = order.code_of(aligner.drop_z)
        data, verb = ("C", "solve") if settings.match is None else ("Z, X", "align")
        lines = [
            f"aligner = dropdtw.Aligner({', '.join(f'{name}={value}' for name, value in said.items())})",
            f"a = aligner.{verb}({data})",
        ]
        if settings.gamma is not None:
            lines.append(f"p = aligner.posterior({data})")
        return "\n".join([*self.data.lines, *lines, ""])

    # --- helpers ----------------------------------------------------------------------------------------------

    @cached_property
    def _curves(self) -> dict[str, Any]:
        return view.curves(self.data.Z, self.data.X, self.data.C)

    @cached_property
    def _order(self) -> dict[str, Any] | None:
        return order.drawn(self.data.steps)

    def _offer(self, match: Any) -> str | None:
        """The name of a match cost, which the page then offers; None if only match costs were loaded."""
        if self.data.Z is None:
            return None
        features = self.data.Z.shape[1]
        if match in (None, "auto"):
            match = costs.resolve("auto", features).name
        costs.resolve(match, features)  # raises an error that explains the problem
        if not isinstance(match, str):
            raise OptionError("match", match, "give one by name", ", which the explorer cannot show")
        if match not in self.matches:
            self.matches.append(match)
        return match

    @cached_property
    def _methods(self) -> dict[str, Method]:
        """The methods that the page offers: those that need only match costs, and take the order if there is one."""
        ordered = self._order is not None
        return {k: m for k, m in METHODS.items() if not m.needs_sequences and (m.takes_orders or not ordered)}

    def _check_method(self, name: Any) -> None:
        """Raise if the page does not offer a method."""
        if name not in self._methods:
            raise OptionError("method", name, f"choose one of {', '.join(self._methods)}")

    def _held(self, name: str, value: Any, resolved: Array) -> Choice:
        """How to show drop costs that are neither a number nor a percentile: as loaded, or as a number."""
        if name in self.data.given and np.array_equal(value, self.data.given[name]):
            return _kind(self.data.given[name])
        if not len(resolved) or (resolved == np.inf).all():
            return Choice()
        if (resolved != resolved[0]).any():
            raise OptionError(name, value, "give one number for all elements", ", which the explorer has no slider for")
        return Choice.of(name, _rounded(float(resolved[0])) if isinstance(value, str) else float(resolved[0]))

    def _threshold(self, aligner: dropdtw.Aligner, match: str | None) -> float | None:
        """The threshold as a number."""
        rule = drops.resolve(aligner.threshold, "threshold")
        if rule is None:
            return None
        value = float(rule(self.costs(match)))  # type: ignore[arg-type]
        return value if np.isfinite(value) else None

    def _note(self) -> str | None:
        """A note if the initial settings do not reproduce the loaded alignment."""
        if self.data.cost is None:
            return None
        try:
            cost = self.alignment(self.first).cost
        except ValueError:
            cost = np.inf
        if np.isclose(cost, self.data.cost, rtol=1e-6):
            return None
        return f"The alignment in the file costs {self.data.cost:.6g}: it was made with different options."


SUGGESTING: Final = ("one_to_many", "many_to_one", "contiguous", "window")
"""Options that affect the suggested drop cost."""


def _suggestion(found: dropdtw.Suggestion) -> dict[str, Any]:
    """A suggested drop cost for the page, with its confidence."""
    return {
        "constant": _rounded(found.constant),
        "percentile": found.percentile,
        "confidence": found.confidence,
        "why": found.why,
    }


def _kind(values: Array) -> Choice:
    """How to show drop costs loaded with the data: as a constant if they are all equal."""
    same = bool((values == values[0]).all())
    return Choice("constant", float(values[0])) if same else Choice("given")


def _price(values: Array) -> float | None:
    """The drop cost if it is the same finite number for all elements."""
    return float(values[0]) if np.isfinite(values[0]) and bool((values == values[0]).all()) else None


def _share(p: float) -> str:
    return "< 0.001" if p < 0.001 else "> 0.999" if p > 0.999 else f"{p:.3f}"


def _rounded(value: float, digits: int = 4) -> float:
    """Round to a few significant digits for display."""
    return float(f"{value:.{digits}g}")

"""The flags of an alignment, which several commands share: declared once, parsed once, suggested once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Annotated, Any, Final

import typer

from dropdtw.cli import options, screen
from dropdtw.problem.inputs import Array
from dropdtw.problem.options import OPTIONS
from dropdtw.tables.methods import METHODS, Matching

Command = Callable[..., None]

PARSERS: Final[dict[str, Callable[[Any, str], Any]]] = {
    "drop_x": options.drop_cost,
    "drop_z": options.drop_cost,
    "open_x": options.opening_cost,
    "open_z": options.opening_cost,
    "window": options.window_width,
    "threshold": options.drop_cost,
    "anchors": options.anchors,
    "per": lambda text, name: text,
}


def _flag(name: str) -> tuple[Any, Any]:
    """How Typer reads an option, and its default. What can be more than a number arrives as text, for `PARSERS`."""
    option = OPTIONS[name]
    kind = (str | None) if name in PARSERS else type(option.default)
    names = () if kind is bool else (f"--{name.replace('_', '-')}",)
    declared = typer.Option(*names, metavar=option.metadata["metavar"], help=option.metadata["doc"])
    return Annotated[kind, declared], None if name in PARSERS else option.default


SHARED: Final[dict[str, tuple[Any, Any]]] = {
    name: _flag(name)
    for name, option in OPTIONS.items()
    if option.metadata["metavar"] is not None or isinstance(option.default, bool)
} | {"settings": (options.Settings, None)}
"""The flags of an alignment: how Typer reads each, and its default."""

ALWAYS: Final = ("drop_x", "drop_z", "match", "settings")
"""The flags of every command that aligns."""

FILE: Final = "Or a file with one number per element. "
"""What the help of --drop-x says if the command reads such files."""


@dataclass(frozen=True)
class Flags:
    """The flags of an alignment as the user gave them, by the names of the library's options."""

    given: dict[str, Any]

    @property
    def files(self) -> list[str | None]:
        """What may be the name of a file."""
        return [self.given.get(name) for name in ("drop_x", "drop_z", "threshold")]

    @property
    def drop_nothing(self) -> bool:
        """Whether the user gave no drop cost, although the method has drop costs."""
        entry = METHODS.get(self.given["method"])  # unknown methods are refused later
        no_costs = self.given["drop_x"] is None and self.given["drop_z"] is None
        return no_costs and entry is not None and entry.takes_drops

    def parsed(self) -> dict[str, Any]:
        """The options as the library takes them."""
        read = {
            name: PARSERS[name](value, name.replace("_", "-")) for name, value in self.given.items() if name in PARSERS
        }
        return {name: value for name, value in self.given.items() if name != "settings"} | read

    def priced(self, sample: Callable[[], tuple[Array, Sequence[Array], int]]) -> dict[str, Any]:
        """The options as the library takes them, each cost of "suggest" as one number for all sequences of a corpus.

        sample : returns a query, some sequences of the corpus, and how many there are.
        """
        how = self.parsed()
        if self.drop_nothing:
            how |= {"drop_x": "suggest", "drop_z": "suggest"}
        if not any(map(suggests, how.values())):
            return how
        Z, some, total = sample()
        drops = [name for name in ("drop_x", "drop_z") if suggests(how[name])]
        if drops:
            how |= dict.fromkeys(drops, _drop_cost(Z, some, total, how))
        return how | _openings(Z, some, total, how)


def suggests(value: object) -> bool:
    """Whether a cost is to be chosen from the data."""
    return isinstance(value, str) and value == "suggest"


def of_alignment(options: type[Any] | Sequence[str], **defaults: bool | str) -> Callable[[Command], Command]:
    """Give a command the flags of an alignment in place of its parameter `flags`, which receives them as `Flags`.

    options : the type of the options that the command takes besides drop costs and match cost; or the names of all.
    defaults : other defaults, or sentences for the help that say what the default of a cost is.
    """
    names = options if not isinstance(options, type) else (*ALWAYS, *options.__annotations__)
    taken = {name: each for name, each in SHARED.items() if name in names}
    for name, default in defaults.items():
        annotation, _ = taken[name]
        if isinstance(default, bool):
            taken[name] = (annotation, default)
        else:
            declared = copy(annotation.__metadata__[0])
            declared.help = f"{declared.help} {default}"
            taken[name] = (Annotated[annotation.__origin__, declared], None)
    made = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in taken.items()
    ]

    def decorate(command: Command) -> Command:
        own = signature(command, eval_str=True).parameters.values()
        place = [each.name for each in own].index("flags")
        named = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in own]

        def run(**given: Any) -> None:
            flags = Flags({name: given.pop(name) for name in taken})
            command(**given, flags=flags)

        said = signature(command).replace(parameters=[*named[:place], *made, *named[place + 1 :]])
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = said  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in said.parameters.values()}
        return run

    return decorate


def _drop_cost(Z: Array, some: Sequence[Array], total: int, how: dict[str, Any]) -> float:
    """Suggest one drop cost for both sides, from a query and a sample of a corpus, and print a note about it."""
    import numpy as np

    import dropdtw

    if not some:
        raise ValueError("there is no readable sequence to suggest a drop cost from; give --drop-x and --drop-z")
    matched = {name: how[name] for name in ("match", "window", *Matching._fields)}
    found = [dropdtw.suggest_drop(Z, X, drop_z=True, **matched) for X in some]
    constant = float(np.median([s.constant for s in found]))
    sure = float(np.mean([s.confidence for s in found]))
    screen.note(f"drop cost {constant:.4g} suggested, from {len(found)} of {total} sequences (confidence {sure:.0%})")
    return constant


def _openings(Z: Array, some: Sequence[Array], total: int, how: dict[str, Any]) -> dict[str, float]:
    """Suggest opening costs, from a query and a sample of a corpus, and print a note about each."""
    import numpy as np

    from dropdtw.problem.problem import Problem
    from dropdtw.problem.spec import Spec

    wanted = [name for name in ("open_x", "open_z") if suggests(how[name])]
    if not wanted:
        return {}
    spec = Spec.of(**how)
    found = [Problem.of_sequences(spec, Z, X).given.charges for X in some if spec.fits(len(Z), len(X))]
    if not found:
        raise ValueError(f"there is no sequence to suggest {wanted[0]} from; give a number")
    openings = {name: float(np.median([getattr(charges, name) for charges in found])) for name in wanted}
    for name, cost in openings.items():
        screen.note(f"opening cost {cost:.4g} suggested for {name[-1]}, from {len(found)} of {total} sequences")
    return openings

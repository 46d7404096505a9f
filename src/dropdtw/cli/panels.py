"""The two panels of a command's help: the options that most people need, and the others."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

COMMON, ADVANCED = "Common options", "Advanced options"


def panels(common: str) -> type[TyperCommand]:
    """The class of a command whose help shows some options first, and the others in a panel of their own.

    common : the names of the parameters to show first, with spaces between them.
    """
    first = {*common.split(), "help"}

    class Command(TyperCommand):
        common = first

        def get_params(self, ctx: Any) -> list[Any]:
            """The parameters of the command: arguments and common options before the others."""
            params: list[Any] = super().get_params(ctx)
            given = [param for param in params if param.param_type_name == "argument"]
            options = [param for param in params if param not in given]
            for param in options:
                param.rich_help_panel = COMMON if param.name in first else ADVANCED
            return [*given, *sorted(options, key=lambda param: param.rich_help_panel == ADVANCED)]

    return Command

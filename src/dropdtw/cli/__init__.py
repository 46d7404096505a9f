"""The command line: `dropdtw`, or `python -m dropdtw`. Needs `pip install dropdtw[cli]` (typer and rich)."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Final, cast

EXTRAS: Final = {
    "av": "media",
    "fsspec": "parquet",
    "matplotlib": "plot",
    "pyarrow": "parquet",
    "ray": "ray",
    "scipy": "metrics",
    "sklearn": "sklearn",
    "starlette": "explore",
    "torch": "torch",
    "uvicorn": "explore",
    "wordllama": "text",
}
"""What to install for a module that is missing; `dropdtw reproduce` needs them all, as "experiments"."""


def main() -> None:
    """Run the command line. A user's mistake gives one line and exit code 2, Ctrl-C exit code 130."""
    try:
        import typer

        from dropdtw.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"the command line needs {error.name}: pip install 'dropdtw[cli]'")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  print would write notes to standard output instead
    if sys.stdout is None:
        _say("standard output is closed; leave it open, or send it to a file")
        sys.exit(2)
    warnings.showwarning = lambda message, *_: _say(str(message))
    # Click's UsageError, wherever this version of typer keeps it.
    wrong_use = cast("type[Exception]", typer.BadParameter.__mro__[1])
    try:
        code = app(standalone_mode=False, prog_name="dropdtw")
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        print("stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # whoever was reading has seen enough, as in `dropdtw … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left to write goes nowhere, and fails no more
        sys.exit(1)
    # What the library raises for wrong input says what to do; a traceback would hide it.
    except (ValueError, OSError, ImportError) as error:
        if os.environ.get("DROPDTW_TRACEBACK"):
            raise
        _say(_missing(error) or str(error))
        sys.exit(2)
    except wrong_use as error:
        _explain(error)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _missing(error: Exception) -> str | None:
    """What to install, where a module is missing that belongs to an extra."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    name = error.name.partition(".")[0]
    extra = "experiments" if sys.argv[1:2] == ["reproduce"] else EXTRAS.get(name)
    return None if extra is None else f"this command needs {name}: pip install 'dropdtw[{extra}]'"


def _explain(error: BaseException) -> None:
    """One line for a command that cannot be understood; where nothing was asked, the help is the answer."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        if message := getattr(error, "message", ""):  # with rich it has been printed already
            print(message, file=sys.stderr)
        return
    about = f" {context.command_path.partition(' ')[2]}" if context and " " in context.command_path else ""
    _say(f"{error.format_message().rstrip('.')}; see: dropdtw{about} --help")  # type: ignore[attr-defined]


def _say(text: str) -> None:
    from dropdtw.files.strangers import one_line

    print(f"dropdtw: {one_line(' '.join(text.split()))}", file=sys.stderr)

"""The command line: `dropdtw`, or `python -m dropdtw`. Needs `pip install 'dropdtw[cli]'` (typer and rich)."""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from typing import Final, cast

EXTRAS: Final = {
    "av": "media",
    "faster_whisper": "speech",
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
"""The extra that installs each optional module."""


def main() -> None:
    """Run `dropdtw`."""
    run("dropdtw.cli.app", "dropdtw")


def run(module: str, program: str) -> None:
    """Run the `app` of a module. A user's mistake prints one line and exits with code 2; Ctrl-C exits with code 130.

    program : the name in usage lines.
    """
    try:
        import typer

        app = import_module(module).app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"the command line needs {error.name}: pip install 'dropdtw[cli]'")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  print would write notes to standard output instead
    if sys.stdout is None:
        _say("standard output is closed; leave it open, or redirect it to a file")
        sys.exit(2)
    warnings.showwarning = lambda message, *_: _say(str(message))
    # Click's UsageError, wherever this version of typer keeps it.
    wrong_use = cast("type[Exception]", typer.BadParameter.__mro__[1])
    from dropdtw.files.progress import log_progress

    log_progress()
    try:
        code = app(standalone_mode=False, prog_name=program)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        print("stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader closed the pipe, as in `dropdtw … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # discard the rest, so that the flush at exit does not fail
        sys.exit(1)
    # The library's errors on wrong input say what to do; a traceback would bury that line.
    except (ValueError, OSError, ImportError) as error:
        if os.environ.get("DROPDTW_TRACEBACK"):
            raise
        _say(_missing(error) or _message(error))
        sys.exit(2)
    except wrong_use as error:
        _explain(error, program)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _missing(error: Exception) -> str | None:
    """What to install, if the error is a missing module that an extra provides."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    name = error.name.partition(".")[0]
    extra = EXTRAS.get(name)
    return None if extra is None else f"this command needs {name}: pip install 'dropdtw[{extra}]'"


def _message(error: Exception) -> str:
    """The message of an error, with flags for options."""
    from dropdtw.problem.errors import MismatchError

    return error.text(_flag) if isinstance(error, MismatchError) else str(error)


def _flag(option: str) -> str:
    """The flag of an option, with its value if one is meant.

    >>> _flag("drop_x"), _flag("many_to_one=False"), _flag("match='cosine'"), _flag("Z")
    ('--drop-x', '--no-many-to-one', '--match cosine', 'Z')
    """
    name, _, value = option.partition("=")
    if name != name.lower():
        return option
    flag = {"times": "time"}.get(name, name.replace("_", "-"))
    return (
        f"--no-{flag}"
        if value == "False"
        else f"--{flag} {'' if value == 'True' else value}".strip(" '").replace("'", "")
    )


def _explain(error: BaseException, program: str) -> None:
    """Print one line about a malformed command. A command without any arguments prints its help instead."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        if message := getattr(error, "message", ""):  # rich has already printed it
            print(message, file=sys.stderr)
        return
    asked = context.command_path if context else program
    _say(f"{error.format_message().rstrip('.')}; see: {asked} --help")  # type: ignore[attr-defined]


def _say(text: str) -> None:
    from dropdtw.files.sanitize import one_line

    print(f"dropdtw: {one_line(' '.join(text.split()))}", file=sys.stderr)

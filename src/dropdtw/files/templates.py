"""Web pages from templates that stand beside the module that fills them in. Needs jinja2."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from dropdtw import palette


def rendered(module: str, **values: Any) -> str:
    """The template `page.html` beside a module, with its values escaped. It may read the palette as `colors`.

    module : the `__file__` of the module.   values : what the template shows.
    """
    page: str = _environment(Path(module).parent).get_template("page.html").render(colors=palette.css(), **values)
    return page


def require() -> None:
    """Raise if jinja2 is missing. Commands that write a page ask before they compute."""
    _environment(Path(__file__).parent)


@cache
def _environment(folder: Path) -> Any:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ModuleNotFoundError:
        raise ImportError("web pages need jinja2: pip install 'dropdtw[text]' or 'dropdtw[media]'") from None
    return Environment(
        autoescape=True,
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )

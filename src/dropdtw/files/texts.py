"""Texts that others saved, in the encodings that they use."""

from __future__ import annotations

import codecs
import warnings

MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""How a file begins that says its encoding."""


def decoded(content: bytes, shown: str) -> str:
    """The text of a file: UTF-8, UTF-16 with a mark, or else Windows-1252, of which a warning is given.

    shown : what to call the file.

    Raises ValueError for what is no text at all.
    """
    encoding = next((name for mark, name in MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        if b"\0" in content or encoding != "utf-8":
            raise ValueError(f"{shown} is no text; give one that is saved as UTF-8") from None
    warnings.warn(
        f"{shown} is not UTF-8; it is read as Windows-1252. If letters look wrong, save it as UTF-8", stacklevel=2
    )
    return content.decode("cp1252", errors="replace")

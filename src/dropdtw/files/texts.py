"""Decode text files of unknown encoding."""

from __future__ import annotations

import codecs
import warnings

MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""Byte order marks, and the encodings that they indicate."""


RECORDINGS = (".mp4", ".mkv", ".webm", ".mov", ".avi", ".mp3", ".m4a", ".wav", ".flac", ".ogg", ".opus", ".aac")
"""Usual extensions of recordings, to recognize one that is given where text or numbers belong."""


def is_recording(name: str) -> bool:
    """Whether a file is a recording, by its extension."""
    return name.lower().endswith(RECORDINGS)


def decoded(content: bytes, shown: str) -> str:
    """Decode a text file: as UTF-8, as UTF-16 if it has a byte order mark, or else as Windows-1252, with a warning.

    content : the bytes of the file.   shown : its name in messages.

    Returns the text. Raises ValueError if the content is not text.

    >>> decoded("café".encode(), "menu.txt")
    'café'
    """
    encoding = next((name for mark, name in MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        if b"\0" in content or encoding != "utf-8":
            raise ValueError(
                f"{shown} is not a text file; give one that is saved as UTF-8"
                + (f" (for a recording: its subtitles, which `whisper {shown}` writes)" if is_recording(shown) else "")
            ) from None
    warnings.warn(
        f"{shown} is not UTF-8; it is read as Windows-1252. If letters look wrong, save it as UTF-8", stacklevel=2
    )
    return content.decode("cp1252", errors="replace")

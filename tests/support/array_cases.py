"""Bytes of .npy and .npz files, valid and invalid."""

import io
import struct
import zipfile

from dropdtw.files import arrays


def saved(save, *given, **named):
    out = io.BytesIO()
    save(out, *given, **named)
    return out.getvalue()


def claiming(shape, dtype="<f8", follow=b"", version=1):
    """An .npy with a false header."""
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return arrays.MAGIC + bytes([version, 0]) + size + text + follow


def zipped(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return out.getvalue()

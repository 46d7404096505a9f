"""Triton's interpreter, without the half of its time that it spends on preparing itself.

At each call of one device function by another, it patches `triton.language` again, which changes nothing after the
first time. Here it does so once per launch and module. It also makes a table of NumPy's types at each look at one.
"""

import inspect
import os
from functools import cache


def install():
    """Make the interpreter faster, if this version of Triton works as expected."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        return
    try:
        from triton.runtime import interpreter

        patch, launch, type_of = interpreter._patch_lang, interpreter.GridExecutor.__call__, interpreter._get_np_dtype
        languages = (interpreter.tl, interpreter.tl.core)
    except (ImportError, AttributeError):
        return
    patched = set()

    @cache
    def seen_by(function):
        modules = filter(inspect.ismodule, function.__globals__.values())
        return frozenset(languages.index(module) for module in modules if module in languages)

    def patch_once(function):
        if patched and seen_by(function) <= patched:
            return None  # only a launch restores what it patched
        patched.update(seen_by(function))
        return patch(function)

    def launch_afresh(self, *args, **kwargs):
        patched.clear()
        try:
            return launch(self, *args, **kwargs)
        finally:
            patched.clear()

    known = cache(type_of)
    interpreter._get_np_dtype = lambda dtype: (known if type(dtype) is interpreter.tl.dtype else type_of)(dtype)
    interpreter._patch_lang, interpreter.GridExecutor.__call__ = patch_once, launch_afresh

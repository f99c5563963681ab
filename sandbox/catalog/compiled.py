"""The decorator of the compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile at the first call, without the interpreter lock, and keep the machine code.

    Where neither the package's directory nor the user's cache can be written (numba
    finds no place), the code is compiled in every process anew: slower to start, the
    same in all else. `NUMBA_CACHE_DIR` names a place.
    """
    try:
        return cast("Function", numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:
        return cast("Function", numba.njit(nogil=True)(function))

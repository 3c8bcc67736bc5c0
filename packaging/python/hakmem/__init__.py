# SPDX-License-Identifier: MIT
"""hakmem's numbers about this process, which it serves when it was started with
`python -m hakmem run PROGRAM.py` or with the library preloaded."""
import ctypes
import os
from pathlib import Path

from hakmem import _fields

__all__ = ["is_serving", "library", "residency", "stats", "trim"]


def library():
    """The path of the library, for LD_PRELOAD."""
    return str(next(Path(__file__).parent.glob("lib*/**/libhakmem.so.0")))


def is_serving():
    """Whether the malloc of this process is hakmem's."""
    process = ctypes.CDLL(None)
    if not hasattr(process, "hakmem_is_owned"):
        return False
    process.malloc.restype = ctypes.c_void_p
    process.malloc.argtypes = [ctypes.c_size_t]
    process.free.argtypes = process.hakmem_is_owned.argtypes = [ctypes.c_void_p]
    block = process.malloc(1)
    is_owned = process.hakmem_is_owned(block) == 1
    process.free(block)
    return is_owned


def _process():
    if not is_serving():
        raise RuntimeError("hakmem does not serve this process: python -m hakmem run PROGRAM.py")
    return ctypes.CDLL(None)


def _numbers(function, names):
    numbers = (ctypes.c_uint64 * len(names))()
    error = function(ctypes.byref(numbers), ctypes.c_size_t(ctypes.sizeof(numbers)))
    if error:
        raise OSError(error, os.strerror(error))
    return dict(zip(names, numbers))


def stats():
    """What the process has and what hakmem keeps, by name (struct hakmem_stats in hakmem.h)."""
    return _numbers(_process().hakmem_stats_get, _fields.STATS)


def residency():
    """What each resident page is resident for, in bytes (struct hakmem_residency in hakmem.h)."""
    return _numbers(_process().hakmem_residency_get, _fields.RESIDENCY)


def trim(pad_bytes=0):
    """Gives the kernel all free memory but for about pad_bytes; returns the bytes given."""
    give = _process().hakmem_trim
    give.restype = ctypes.c_size_t
    return give(ctypes.c_size_t(pad_bytes))

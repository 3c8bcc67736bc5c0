# SPDX-License-Identifier: MIT
"""hakmem's statistics and heap profile of this process, which it serves if started with
`python -m hakmem run PROGRAM.py` or with the library preloaded."""
import ctypes
import os
from pathlib import Path

from hakmem import _fields

__all__ = ["is_serving", "library", "profile", "residency", "start_profile", "stats",
           "stop_profile", "trim"]


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


def _check(error):
    if error:
        raise OSError(error, os.strerror(error))


def _numbers(function, names):
    numbers = (ctypes.c_uint64 * len(names))()
    _check(function(ctypes.byref(numbers), ctypes.c_size_t(ctypes.sizeof(numbers))))
    return dict(zip(names, numbers))


def stats():
    """Live, cached and free memory and counters, by name (struct hakmem_stats in hakmem.h)."""
    return _numbers(_process().hakmem_stats_get, _fields.STATS)


def residency():
    """Resident bytes by use (struct hakmem_residency in hakmem.h)."""
    return _numbers(_process().hakmem_residency_get, _fields.RESIDENCY)


def trim(pad_bytes=0):
    """Returns all free memory but about pad_bytes to the kernel; the result is its size."""
    give = _process().hakmem_trim
    give.restype = ctypes.c_size_t
    return give(ctypes.c_size_t(pad_bytes))


def start_profile(mean_bytes=0):
    """Starts sampling one allocation per mean_bytes on average; 0: option heap_profile_rate."""
    _process().hakmem_profile_start(ctypes.c_size_t(mean_bytes))


def stop_profile():
    """Stops sampling. Blocks that were sampled are tracked until they are freed."""
    _process().hakmem_profile_stop()


def profile(path, form="pprof"):
    """Writes the heap profile so far to a file, as "pprof", "heap_v2", "folded" or "json". The file
    has addresses; `hakmem profile FILE` adds function names."""
    if form not in ("pprof", "heap_v2", "folded", "json"):
        raise ValueError(f"{form!r} is no form of a heap profile")
    with open(path, "wb") as file:
        _check(_process().hakmem_profile_print(file.fileno(), form.encode()))

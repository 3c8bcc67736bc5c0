# SPDX-License-Identifier: MIT
"""Numbers with units for people: three digits that mean something."""
import math

TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def digits(value):
    """Three significant digits, never as a power of ten."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(2 - math.floor(math.log10(abs(value))), 0)
    return f"{value:,.{min(places, 9)}f}"


def time_unit(nanoseconds):
    """(its nanoseconds, its name) of the unit in which a time is at least 1."""
    return next((unit for unit in TIMES if nanoseconds >= unit[0]), TIMES[-1])


def duration(nanoseconds, unit=None):
    """Such as 1.53 s, 320 ms, 9.83 ns."""
    size, name = unit or time_unit(nanoseconds)
    return f"{digits(nanoseconds / size)} {name}"


def memory(mib):
    """Such as 1.9 MiB, 476 MiB, 1.21 GiB."""
    if mib >= 1024:
        return f"{digits(mib / 1024)} GiB"
    return f"{mib:.0f} MiB" if mib >= 100 else f"{mib:.1f} MiB"


def times(factor):
    """Such as 1.14x, 3.6x, 12x."""
    return f"{factor:.2f}x" if factor < 2 else f"{factor:.1f}x" if factor < 10 else f"{factor:.0f}x"


def change(factor, more, less):
    """How much `more` or `less` a factor is, in words: 3.6x faster, 1.14x slower."""
    return f"{times(factor)} {more}" if factor >= 1 else f"{times(1 / factor)} {less}"

# SPDX-License-Identifier: MIT
"""hakmem's own statistics, as it writes them at exit: lines of `name: value`."""
import re

LINE = re.compile(r"^\s*(?:hakmem: )?([a-z][a-z0-9_]*): +(-?[0-9]+)\s*$", re.M)


def environment(path):
    """The variables that make hakmem write its statistics to the path when the program ends."""
    return {"HAKMEM_STATS": "text", "HAKMEM_STATS_FILE": str(path)}


def parse(text):
    """{name: whole number} of every such line; other lines are passed over."""
    return {name: int(value) for name, value in LINE.findall(text)}

# SPDX-License-Identifier: MIT
"""hakmem's own statistics, as it writes them at exit: an object in a line of JSON."""
import json


def environment(path):
    """The variables that make hakmem write its statistics to the path when the program ends."""
    return {"HAKMEM_STATS": "json", "HAKMEM_STATS_FILE": str(path)}


def parse(text):
    """{name: whole number} of the last report; other lines are passed over."""
    found = {}

    def add(members):
        for name, value in members.items():
            if isinstance(value, dict):
                add(value)
            elif isinstance(value, int):
                found[name] = value

    for line in text.splitlines():
        try:
            report = json.loads(line)
        except ValueError:
            continue
        if isinstance(report, dict):
            found.clear()
            add(report)
    return found

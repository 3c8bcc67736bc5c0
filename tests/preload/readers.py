# SPDX-License-Identifier: MIT
"""Reads statistics in all their forms, for the scripts here."""
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as tree

ROOT = pathlib.Path(__file__).resolve().parents[2]
try:
    import jsonschema
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

SAMPLE_FIELDS = {"slabs": "slabs", "live": "live_blocks", "cached": "cached_blocks",
                 "free": "free_blocks", "taken": "taken_blocks",
                 "popped": "popped_blocks", "requests": "requests",
                 "reallocs": "reallocs"}


def equal(what, left, right):
    """Says what differs, and ends."""
    if left != right:
        if isinstance(left, dict) and isinstance(right, dict):
            names = [name for name in {*left, *right} if left.get(name) != right.get(name)]
            left, right = ({name: side.get(name) for name in names} for side in (left, right))
        sys.exit(f"FAILED: {what}: {left} is not {right}")


def from_text(text):
    """name -> number, as the other readers have it"""
    numbers = {}
    for line in text.splitlines():
        name, number = line.split(": ")
        assert name not in numbers, name
        numbers[name] = int(number)
    return numbers


def from_json(text):
    """The same from the JSON form, which is valid."""
    whole = json.loads(text)
    schema = json.loads((ROOT / "docs/stats.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(whole, schema)
    equal("JSON is one line", text.count("\n"), 1)
    numbers = {"pid": whole["pid"], "unix_ms": whole["unix_ms"]}
    for group in ("memory", "totals", "process", "exact", "slow_paths"):
        numbers |= whole.get(group, {})
    for name, lock in whole["locks"].items():
        numbers |= {f"waits_{name}": lock["waits"], f"waited_ns_{name}": lock["waited_ns"]}
    numbers |= {f"policy_{name}": value for name, value in whole["policy"].items()}
    for row in whole["classes"]:
        numbers |= {f"class_{row['block_bytes']}_{field}": row[field]
                    for field in SAMPLE_FIELDS.values() if field in row}
    for row in whole["caches"]:
        kind = "processor" if "processor" in row else "thread"
        numbers |= {f"{kind}_{row[kind]}_{field}": value
                    for field, value in row.items() if field != kind}
    for row in whole["heaps"]:
        numbers |= {f"heap_{row['id']}_{field}": value
                    for field, value in row.items() if field != "id"}
    return numbers


def is_of_one(name):
    """Whether it is a number of one cache or heap, which only text and JSON have."""
    return re.match(r"(processor|thread|heap)_\d+_", name) is not None


def from_xml(text):
    """The same from the XML form."""
    own = tree.fromstring(text).find("hakmem")
    numbers = {row.get("name"): int(row.get("value")) for row in own.findall("counter")}
    for row in own.findall("class"):
        numbers |= {f"class_{row.get('size')}_{name}": int(row.get(attribute))
                    for attribute, name in SAMPLE_FIELDS.items() if attribute in row.keys()}
    return numbers


def from_openmetrics(text):
    """The same from OpenMetrics; values are floating point there."""
    numbers = {}
    for family in parse(text):
        assert family.name.startswith("hakmem_") and family.documentation, family
        assert family.type in ("gauge", "counter", "info"), family
        if family.name.endswith("_bytes"):
            equal(f"the unit of {family.name}", family.unit, "bytes")
        for sample in family.samples:
            name = family.name.removeprefix("hakmem_")
            value = sample.value
            if "size" in sample.labels:
                name = name.replace("class_", f"class_{sample.labels['size']}_")
            elif name == "lock_waits":
                name = f"waits_{sample.labels['lock']}"
            elif name == "lock_waited_seconds":
                name, value = f"waited_ns_{sample.labels['lock']}", round(value * 1e9)
            elif name == "build":
                continue
            numbers[name] = int(value)
    return numbers


READERS = {"text": from_text, "json": from_json, "xml": from_xml, "openmetrics": from_openmetrics}


def read(folder, when):
    """All forms of one moment, which agree."""
    forms = {form: reader((folder / f"{when}.{form}").read_text())
             for form, reader in READERS.items()}
    text = forms["text"]
    moment = {"pid", "unix_ms"}
    exact = {name: value for name, value in text.items() if name not in moment}
    equal("JSON and text", {name: value for name, value in forms["json"].items()
                            if name not in moment}, exact)
    common = {name: value for name, value in exact.items() if not is_of_one(name)}
    equal("XML and text", forms["xml"], common)
    equal("OpenMetrics and text", forms["openmetrics"],
          {name: int(float(value)) for name, value in common.items()})
    equal("the process", text["pid"], forms["json"]["pid"])
    return exact

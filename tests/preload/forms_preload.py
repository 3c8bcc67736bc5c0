#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The statistics as programs read them: every form is what its format demands, all of them say the
same, and what they say is what a program counted itself. If this fails, graphs show nothing, or
what is not."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = pathlib.Path(os.environ["OUT"])
try:
    import jsonschema
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

SAMPLE_FIELDS = {"slabs": "slabs", "live": "live_blocks", "cached": "cached_blocks",
                 "free": "free_blocks"}


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
    for group in ("memory", "totals", "process", "slow_paths"):
        numbers |= whole[group]
    for name, lock in whole["locks"].items():
        numbers |= {f"waits_{name}": lock["waits"], f"waited_ns_{name}": lock["waited_ns"]}
    numbers |= {f"policy_{name}": value for name, value in whole["policy"].items()}
    for row in whole["classes"]:
        numbers |= {f"class_{row['block_bytes']}_{field}": row[field]
                    for field in SAMPLE_FIELDS.values()}
    return numbers


def from_xml(text):
    """The same from the XML form."""
    own = tree.fromstring(text).find("hakmem")
    numbers = {row.get("name"): int(row.get("value")) for row in own.findall("counter")}
    for row in own.findall("class"):
        numbers |= {f"class_{row.get('size')}_{name}": int(row.get(attribute))
                    for attribute, name in SAMPLE_FIELDS.items()}
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
    equal("XML and text", forms["xml"], exact)
    equal("OpenMetrics and text", forms["openmetrics"],
          {name: int(float(value)) for name, value in exact.items()})
    equal("the process", text["pid"], forms["json"]["pid"])
    return exact


def check_parts(numbers):
    """What is called a sum is one."""
    parts = ("live cached withheld homeward slab_free slab_warm slab_clean span_warm span_clean "
             "span_lost hole").split()
    equal("the window is the sum of its parts", sum(numbers[f"{name}_bytes"] for name in parts),
          numbers["window_committed_bytes"])
    small = {int(name.split("_")[1]): value for name, value in numbers.items()
             if name.startswith("class_") and name.endswith("_live_blocks")}
    equal("live blocks by size", sum(size * count for size, count in small.items()),
          numbers["small_live_bytes"])
    equal("live blocks", sum(small.values()), numbers["small_live_blocks"])
    equal("slabs by size", sum(value for name, value in numbers.items()
                               if name.startswith("class_") and name.endswith("_slabs")),
          numbers["slabs"])


def main():
    """Runs the program, reads what it left."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ran = subprocess.run([OUT / "tests/preload_forms", folder], check=False,
                             capture_output=True, text=True, timeout=100,
                             env={"LD_PRELOAD": os.environ["PRELOAD_LIB"]})
        equal(f"the program ends well: {ran.stderr}", ran.returncode, 0)
        before, after = read(folder, "before"), read(folder, "after")
    check_parts(before)
    check_parts(after)
    lines = [line.split() for line in ran.stdout.splitlines()]
    for name, count in (line for line in lines if not line[0].isdigit()):
        equal(name, after[name] - before[name], int(count))
    counted = {int(size): int(count) for size, count in lines if size.isdigit()}
    for size, count in counted.items():
        if size > 128 << 10:
            equal("large blocks", after["large_live_blocks"] - before["large_live_blocks"], count)
            continue
        row = f"class_{size}_live_blocks"
        equal(f"live blocks of {size}", after.get(row, 0) - before.get(row, 0), count)
    small = sum(size * count for size, count in counted.items() if size <= 128 << 10)
    equal("small live bytes", after["small_live_bytes"] - before["small_live_bytes"], small)
    equal("large blocks taken", after["spans_taken"] - before["spans_taken"], 3)
    equal("large blocks given", after["spans_given"] - before["spans_given"], 2)
    print(f"{len(after)} numbers in {len(READERS)} forms agree")


main()

# SPDX-License-Identifier: MIT
"""Reads statistics in all their forms, for the scripts here."""
import json
import os
import pathlib
import re
import subprocess
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


REASONS = re.findall(r'X\((\w+),[\s\\]*"([^"]*)"\)', (ROOT / "src/os/rseq.h").read_text())


def reason_of(kind, meaning):
    """The number of a reason, which goes with whose the caches are."""
    number = [words for _, words in REASONS].index(meaning)
    equal(f"whose the caches are: {meaning}", kind, "thread" if number else "processor")
    return number


def from_raw(text):
    """name -> number, as the other readers have it"""
    numbers = {}
    for line in text.splitlines():
        name, number = line.split(": ")
        assert name not in numbers, name
        numbers[name] = int(number)
    equal("the last row counts the others", numbers.pop("rows"), len(numbers))
    return numbers


def from_json(text):
    """The same from the JSON form, which is valid."""
    whole = json.loads(text)
    schema = json.loads((ROOT / "docs/stats.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(whole, schema)
    equal("JSON is one line", text.count("\n"), 1)
    numbers = {"pid": whole["pid"], "unix_ms": whole["unix_ms"],
               "rseq_reason": reason_of(whole["rseq"], whole["rseq_reason"])}
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


def from_xml(text):
    """The same from the XML form."""
    own = tree.fromstring(text).find("hakmem")
    numbers = {row.get("name"): int(row.get("value")) for row in own.findall("counter")}
    for row in own.findall("class"):
        numbers |= {f"class_{row.get('size')}_{name}": int(row.get(attribute))
                    for attribute, name in SAMPLE_FIELDS.items() if attribute in row.keys()}
    for row in [*own.findall("cache"), *own.findall("heap")]:
        kind, *fields = row.keys()
        numbers |= {f"{'heap' if kind == 'id' else kind}_{row.get(kind)}_{field}":
                    int(row.get(field)) for field in fields}
    rseq = own.find("rseq")
    return numbers | {"rseq_reason": reason_of(rseq.get("by"), rseq.get("reason"))}


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
            elif name == "rseq":
                name, value = "rseq_reason", reason_of(sample.labels["by"], sample.labels["reason"])
            elif name == "build":
                continue
            for kind in ("processor", "thread", "heap"):
                if kind in sample.labels:
                    name = f"{kind}_{sample.labels[kind]}_{name.partition('_')[2]}"
            numbers[name] = int(value)
    return numbers


READERS = {"raw": from_raw, "json": from_json, "xml": from_xml, "openmetrics": from_openmetrics}


def read(folder, when):
    """All forms of one moment, which agree."""
    forms = {form: reader((folder / f"{when}.{form}").read_text())
             for form, reader in READERS.items()}
    raw = forms["raw"]
    # What the kernel says may change between two looks, and each look enters all heaps.
    moment = {"pid", "unix_ms", "resident_bytes", "resident_peak_bytes", "own_resident_bytes",
              *(name for name in raw if re.fullmatch(r"heap_\d+_entries", name))}
    exact = {name: value for name, value in raw.items() if name not in moment}
    for form in ("json", "xml", "openmetrics"):
        equal(f"{form} and raw", {name: value for name, value in forms[form].items()
                                  if name not in moment},
              {name: int(float(value)) if form == "openmetrics" else value
               for name, value in exact.items()})
    equal("the process", {raw["pid"]}, {forms[form]["pid"] for form in ("json", "xml")})
    if not 0 < raw["own_resident_bytes"] < raw["resident_bytes"] <= raw["resident_peak_bytes"]:
        sys.exit(f"FAILED: resident: {raw}")
    return exact


def shown(folder, when):
    """What the command says of each form, which is the same."""
    hakmem = pathlib.Path(os.environ["OUT"]) / "hakmem"
    texts = {}
    for form in ("text", *READERS):
        ran = subprocess.run([hakmem, "stats", folder / f"{when}.{form}"], check=False,
                             capture_output=True, text=True, timeout=300)
        equal(f"hakmem stats reads {form}: {ran.stderr}", (ran.returncode, ran.stderr), (0, ""))
        lines = ran.stdout.splitlines()
        if form == "text":
            equal("text is shown as it is", ran.stdout, (folder / f"{when}.text").read_text())
        equal(f"{form}: the head", lines[0].startswith("hakmem statistics"), True)
        equal(f"{form}: lines wider than a terminal",
              [line for line in lines if len(line) > 79], [])
        # But for the moment, and for what the kernel counts.
        texts[form] = [line for line in lines[1:]
                       if not re.match("(own_)?resident|fragmentation|Not shown", line)]
    for form, lines in texts.items():
        equal(f"{form} and text", lines, texts["text"])
    return texts["text"]

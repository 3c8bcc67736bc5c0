#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The heap profile against a count of every block: 64 call sites in each of eight workloads, among
them one that allocates and frees in pairs a hundred times as often as it keeps. If this fails,
profiles name the wrong code, or too much or little of it.

Of the sites 95 % or more are within two standard deviations, or within 5 % where they have many
samples; 92 % of 1,536 is five deviations less than that (and some 98.9 % are). A sum of some 45,000
samples is wrong by up to 0.5 %, the mean of three by 0.3 %: 2 % is seven deviations."""
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import profiler_accuracy as accuracy  # pylint: disable=wrong-import-position

for needed in ("g++", "nm"):
    if shutil.which(needed) is None:
        print(f"skipped: no {needed}")
        sys.exit(77)

OPTIONS = types.SimpleNamespace(hakmem=pathlib.Path(os.environ["OUT"]))
with tempfile.TemporaryDirectory() as folder:
    program = pathlib.Path(folder) / "sites"
    accuracy.compile_to(program, "profiler_sites.cpp")
    found = accuracy.find_sites(accuracy.sites_of_hakmem, program, pathlib.Path(folder), 3, OPTIONS)
for workload, sites in found.items():
    print(f"{workload}: {sites.cell()}")
    if not 0.98 < statistics.mean(sites.sums) < 1.02:
        sys.exit(f"FAILED: {workload}: {sites.sums} of the bytes are found")
print(f"{100 * accuracy.share_right(found):.1f} % of the sites are right")
if accuracy.share_right(found) < 0.92:
    sys.exit("FAILED: too few of the sites are right")

# SPDX-License-Identifier: MIT
"""What tests of sessions share: a short case, a library that serves nothing, a made-up session."""
import json
import subprocess

from hakbench.plan import Case

CASE = Case("random_mixed_256", "one thread", None, "bench_random_mixed", "50000 256 42",
            "50000 256 42", "1000 16 42", "random mixed, 256 slots")


def empty_library(folder, name="libempty.so"):
    library = folder / name
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", library], check=True)
    return library


def made_up(path, times, rounds=10, spread=0.01, cases=("work_1", "work_2"), notes=None):
    """Writes a session whose runs of {allocator: seconds} alternate around them by the spread."""
    first = next(iter(times))
    header = {"record": "session", "quick": False, "repeats": rounds,
              "environment": {"date": "2026-01-01 00:00 UTC", "cpu": "some", "processors": 2,
                              "kernel": "6", "commit": "abc", "huge_pages": "madvise"},
              "allocators": [{"name": name, "title": name, "version": "1", "digest": "",
                              "origin": "here", "environment": {}} for name in times],
              "cases": [{"name": name, "title": f"title of {name}", "group": "all", "command": name,
                         "threads": int(name[-1]), "curve": "work"} for name in cases]}
    records = [header]
    for case in cases:
        for number in range(-1, rounds):
            for arm, time in {**times, f"{first} (again)": times[first]}.items():
                shift = 1 + spread * ((number + len(arm)) % 3 - 1)
                records.append({
                    "record": "run" if number >= 0 else "warmup", "case": case, "arm": arm,
                    "round": max(number, 0), "served": True, "operations": 1000000,
                    "time_s": time * shift * (2 if number < 0 else 1),
                    "throughput": 1 / (time * shift), "notes": notes or {}, "wall_s": time * 1.1,
                    "user_s": time, "system_s": 0.01, "peak_rss_kib": int(40960 * time),
                    "average_rss_kib": int(20480 * time), "minor_faults": 10, "major_faults": 0,
                    "voluntary_switches": 1, "involuntary_switches": 2,
                    "rss": [[5 * i, 1000 * i] for i in range(20)]})
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path

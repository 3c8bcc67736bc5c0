# SPDX-License-Identifier: MIT
"""Puts tools/ on the path and builds the workloads once, away from the build folder."""
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

WORKLOADS = ("bench_random_mixed", "larson", "bench_mid_large_mt")


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    """A root with the sources, the built workloads and the no-op allocator."""
    folder = tmp_path_factory.mktemp("root")
    release = folder / "out/release"
    release.mkdir(parents=True)
    (folder / "bench").symlink_to(ROOT / "bench")
    compile_c = ["cc", "-std=gnu11", "-O2", "-fno-builtin-malloc", "-pthread"]
    for name in WORKLOADS:
        subprocess.run([*compile_c, f"bench/workloads/{name}.c", "-o", f"{release}/{name}_system"],
                       cwd=ROOT, check=True)
    subprocess.run([*compile_c, "-shared", "-fPIC", "bench/noop/noop.c", "-o",
                    f"{release}/libnoop.so"], cwd=ROOT, check=True)
    return folder

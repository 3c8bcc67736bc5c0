# SPDX-License-Identifier: MIT
"""The allocators that are compared: where each comes from, its library and its version.

An allocator is named as in OWN or RECIPES, optionally with variables:
`hakmem@HAKMEM_MODE=minimal@HAKMEM_THP=off`.
"""
import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path


class PeerError(Exception):
    """An allocator is unknown or cannot be had."""


@dataclass(frozen=True)
class Peer:
    """An allocator that is ready to be preloaded; library None means the program's own libc."""
    name: str
    title: str
    version: str
    library: Path | None = None
    environment: dict = field(default_factory=dict)

    def variables(self):
        """The variables that put a program on this allocator."""
        preload = {"LD_PRELOAD": str(self.library)} if self.library else {}
        return preload | self.environment


@dataclass(frozen=True)
class Recipe:
    """How to get a peer: `package` of `registry` (pypi or debian), whose `file` is preloaded."""
    title: str
    registry: str
    package: str
    file: str


OWN = {"system": "system allocator", "hakmem": "hakmem", "noop": "no-op allocator"}
RECIPES = {
    "mimalloc": Recipe("mimalloc 3", "pypi", "cmeel-mimalloc==3.4.3", "libmimalloc.so"),
    "mimalloc2": Recipe("mimalloc 2", "debian", "libmimalloc2.0", "libmimalloc.so.2.0"),
    "jemalloc": Recipe("jemalloc", "debian", "libjemalloc2", "libjemalloc.so.2"),
    "gperftools": Recipe("gperftools", "debian", "libtcmalloc-minimal4",
                         "libtcmalloc_minimal.so.4"),
}
DEFAULT = ("hakmem", "system", *RECIPES)
DOWNLOAD_TIMEOUT_S = 300


def resolve(root, specification):
    """The Peer of `NAME` or `NAME@VARIABLE=VALUE@...`, fetched if need be."""
    name, *settings = specification.split("@")
    if not all("=" in setting for setting in settings):
        raise PeerError(f"{specification}: expected NAME@VARIABLE=VALUE@VARIABLE=VALUE")
    variables = dict(setting.split("=", 1) for setting in settings)
    if name in OWN:
        return _own(root, name, specification, variables)
    if name not in RECIPES:
        raise PeerError(f"no allocator {name}; there are {', '.join((*OWN, *RECIPES))}")
    recipe, library, version = RECIPES[name], *fetch(root, name)
    return Peer(specification, recipe.title, version, library, variables)


def _own(root, name, specification, variables):
    if name == "system":
        version = os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
        return Peer(specification, OWN[name], version, None, variables)
    library = root / f"out/release/lib{name}.so"
    if not library.exists():
        raise PeerError(f"out/release/lib{name}.so is not built (./hak build)")
    if name == "noop":
        variables = {"BENCH_VERIFY": "off"} | variables
    return Peer(specification, OWN[name], commit(root), library, variables)


def commit(root):
    """The commit that is built, with `+` if files differ from it."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    head = git("rev-parse", "--short=12", "HEAD")
    if head.returncode:
        return "uncommitted"
    return head.stdout.strip() + ("+" if git("status", "--porcelain").stdout.strip() else "")


def fetch(root, name):
    """(library, version) of a recipe, downloaded into out/peers/NAME if it is not there."""
    folder = root / "out/peers" / name
    record = folder / "peer.json"
    recipe = RECIPES[name]
    if record.exists():
        known = json.loads(record.read_text(encoding="utf-8"))
        if known["package"] == recipe.package:
            return folder / known["library"], known["version"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    version = (_fetch_pypi if recipe.registry == "pypi" else _fetch_debian)(folder, recipe)
    found = sorted(path for path in folder.rglob(recipe.file) if path.exists())
    if not found:
        raise PeerError(f"{name}: {recipe.package} holds no {recipe.file}")
    library = found[0].resolve().relative_to(folder.resolve())
    record.write_text(json.dumps({"package": recipe.package, "version": version,
                                  "library": str(library)}) + "\n", encoding="utf-8")
    return folder / library, version


def _call(words, folder):
    try:
        return subprocess.run(words, cwd=folder, capture_output=True, text=True,
                              timeout=DOWNLOAD_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(words, 1, "", str(error))


def _reason(done):
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[-1] if lines else f"status {done.returncode}"


def _fetch_pypi(folder, recipe):
    done = _call([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary",
                  ":all:", "--disable-pip-version-check", recipe.package], folder)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        raise PeerError(f"{recipe.package}: {_reason(done)}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(folder / "files")
    return recipe.package.partition("==")[2]


def _fetch_debian(folder, recipe):
    """Unpacks the Debian package without installing it, which needs no root."""
    done = _call(["apt-get", "download", "-qq", recipe.package], folder)
    if done.returncode and os.geteuid() == 0:
        _call(["apt-get", "update", "-qq"], folder)
        done = _call(["apt-get", "download", "-qq", recipe.package], folder)
    packages = list(folder.glob("*.deb"))
    if done.returncode or not packages:
        raise PeerError(f"{recipe.package}: {_reason(done)}")
    unpacked = _call(["dpkg-deb", "-x", packages[0].name, "files"], folder)
    version = _call(["dpkg-deb", "-f", packages[0].name, "Version"], folder)
    if unpacked.returncode or version.returncode:
        raise PeerError(f"{recipe.package}: {_reason(unpacked)}")
    return version.stdout.strip()

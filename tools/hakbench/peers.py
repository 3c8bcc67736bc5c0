# SPDX-License-Identifier: MIT
"""The allocators that are compared: the library and version of each.

An allocator is named as in OWN or RECIPES, or is a file NAME.so, optionally with variables:
`hakmem@HAKMEM_MODE=minimal@HAKMEM_THP=off`.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .recipes import RECIPES, RecipeError, library_only


class PeerError(Exception):
    """An allocator is unknown or cannot be had."""


@dataclass(frozen=True)
class Peer:
    """An allocator that is ready to be preloaded; library None means the program's own libc. One
    that is not preloaded is what the program brings."""
    name: str
    title: str
    version: str
    library: Path | None = None
    environment: dict = field(default_factory=dict)
    origin: str = "built here"
    is_preloaded: bool = True

    def variables(self):
        """The variables that put a program on this allocator."""
        preload = self.library and self.is_preloaded
        preload = {"LD_PRELOAD": str(self.library)} if preload else {}
        return preload | self.environment


NOOP = "noop"
VARIABLE = re.compile(r"[A-Za-z_]\w*=")
OWN = {"system": "system allocator", "hakmem": "hakmem", NOOP: "no-op allocator"}
DEFAULT = ("hakmem", "system", *RECIPES)


def known(root, specification):
    """(name, variables) of `NAME`, `PATH.so` or `NAME@VARIABLE=VALUE@...`; raises PeerError if
    there is no such allocator."""
    name, *settings = specification.split("@")
    if not all(VARIABLE.match(setting) for setting in settings):
        raise PeerError(f"{specification}: expected NAME@VARIABLE=VALUE@VARIABLE=VALUE")
    if name.endswith(".so"):
        _library(root, name)
    elif name not in (*OWN, *RECIPES):
        raise PeerError(f"no allocator '{name}'; there are {', '.join((*OWN, *RECIPES))}, or a "
                        "file NAME.so")
    return name, dict(setting.split("=", 1) for setting in settings)


def check_first(names):
    """Raises PeerError if nothing could be compared with the first."""
    if names[0].split("@")[0] == NOOP:
        raise PeerError("noop is no allocator to compare with: it tells a program's own time, and "
                        "comes after another one")


def resolve(root, specification, say=lambda text: None):
    """The Peer of a specification (see known), fetched if need be."""
    name, variables = known(root, specification)
    if name in OWN:
        return _own(root, name, specification, variables)
    if name.endswith(".so"):
        return _file(root, name, specification, variables)
    recipe, (library, version) = RECIPES[name], fetch(root, name, say)
    return Peer(specification, recipe.title, version, library, recipe.environment | variables,
                f"{recipe.package} of {recipe.registry}")


def _library(root, name):
    """The path of a library; raises PeerError if the file is none."""
    path = (root / name).resolve()
    try:
        with path.open("rb") as file:
            if file.read(4) == b"\x7fELF":
                return path
    except OSError as error:
        raise PeerError(f"{name}: {error.strerror}") from None
    raise PeerError(f"{name} is no library")


def _file(root, name, specification, variables):
    """A library somewhere, such as another build; named in results by its file only."""
    library = _library(root, name)
    return Peer(specification, library.name, digest(library)[:12], library, variables, "a file")


def digest(library):
    """SHA-256 of a library, to know it again; empty for libc."""
    return hashlib.sha256(library.read_bytes()).hexdigest() if library else ""


def _own(root, name, specification, variables):
    if name == "system":
        version = os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
        return Peer(specification, OWN[name], version, None, variables, "installed")
    library = root / f"out/release/lib{name}.so"
    if not library.exists():
        raise PeerError(f"out/release/lib{name}.so is not built (./hak build)")
    if name == NOOP:
        variables = {"BENCH_VERIFY": "off"} | variables
    return Peer(specification, OWN[name], commit(root), library, variables)


def commit(root):
    """The commit that is built, with `+` if files differ from it, as far as git can tell."""
    if not shutil.which("git"):
        return "uncommitted"

    def git(*words):
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    head = git("rev-parse", "--short=12", "HEAD")
    if head.returncode:
        return "uncommitted"
    return head.stdout.strip() + ("+" if git("status", "--porcelain").stdout.strip() else "")


def at_hand(root):
    """The Peers that can be had without fetching or building any: ours, those in out/peers, and
    those that are installed where the loader finds them."""
    found = [resolve(root, name) for name in ("hakmem", "system")]
    for name, recipe in RECIPES.items():
        if _fetched(root, name):
            found.append(resolve(root, name))
        elif library := installed(recipe.file):
            found.append(Peer(name, recipe.title, f"installed, {digest(library)[:12]}", library,
                              recipe.environment, "installed"))
    # Two recipes of one library are one installed library.
    return list({peer.library: peer for peer in reversed(found)}.values())[::-1]


def installed(file):
    """The library where the loader finds it; None if it does not."""
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False)
    place = re.search(rf"^\s+{re.escape(file)} \(.*\) => (\S+)$", known.stdout, re.M)
    return Path(place[1]).resolve() if place else None


def _fetched(root, name):
    """(library, version) of a recipe in out/peers/NAME; None if it is not there."""
    folder = root / "out/peers" / name
    record = folder / "peer.json"
    if record.exists():
        known = json.loads(record.read_text(encoding="utf-8"))
        if known["package"] == RECIPES[name].package and (folder / known["library"]).exists():
            return folder / known["library"], known["version"]
    return None


def fetch(root, name, say=lambda text: None):
    """(library, version) of a recipe, made in out/peers/NAME if it is not there."""
    folder = root / "out/peers" / name
    record = folder / "peer.json"
    recipe = RECIPES[name]
    if known := _fetched(root, name):
        return known
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        library, version = recipe.make(folder, recipe, say)
        library = library_only(folder, library)
    except RecipeError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise PeerError(f"{recipe.package} of {recipe.registry}: {error}") from None
    record.write_text(json.dumps({"package": recipe.package, "version": version,
                                  "library": library.name}) + "\n", encoding="utf-8")
    return library, version

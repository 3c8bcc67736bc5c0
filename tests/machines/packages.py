# SPDX-License-Identifier: MIT
"""Debian's packages of other releases and other machines, unpacked and not installed.

They come from the mirror that this machine's own apt sources name, by apt-get with package lists of
its own, and stay in out/machines for a week.
"""
import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STORE = ROOT / "out/machines"
KEPT_S = 7 * 24 * 3600
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Missing(Exception):
    """What a machine needs cannot be had here."""


def run(*command, folder=None):
    """What a command prints; Missing when it fails."""
    done = subprocess.run([str(word) for word in command], text=True, cwd=folder or STORE,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        raise Missing(f"{command[0]} {command[-1]} said: {said[-1]}")
    return done.stdout


def sources():
    """(URI, suites, components) of each source of the machine."""
    folder = pathlib.Path("/etc/apt/sources.list.d")
    for path in [pathlib.Path("/etc/apt/sources.list"), *sorted(folder.glob("*.list"))]:
        text = path.read_text() if path.exists() else ""
        line = r"^deb\s+(?:\[.*\]\s+)?(\S+)\s+(\S+)\s+(.*)$"
        for uri, suite, parts in re.findall(line, text, re.M):
            yield uri, [suite], parts.split()
    for path in sorted(folder.glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text()):
            fields = dict(re.findall(r"^([A-Za-z-]+):\s*(.*)$", stanza, re.M))
            for uri in fields.get("URIs", "").split():
                yield uri, fields.get("Suites", "").split(), fields.get("Components", "").split()


def codename():
    """The name of this machine's own release."""
    system = pathlib.Path("/etc/os-release").read_text()
    name = re.search(r"^VERSION_CODENAME=(.*)$", system, re.M)
    if not re.search(r"^ID=debian$", system, re.M) or name is None:
        raise Missing("this machine is no Debian")
    return name[1]


def mirror():
    """Where this machine's own release comes from."""
    name = codename()
    for uri, suites, components in sources():
        if name in suites and "main" in components:
            return uri
    raise Missing("the machine's sources name no mirror")


@contextlib.contextmanager
def locked(name):
    """One process at a time."""
    STORE.mkdir(parents=True, exist_ok=True)
    with open(STORE / f"{name}.lock", "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_fresh(path):
    return path.exists() and time.time() - path.stat().st_mtime < KEPT_S


def keep_links_inside(place):
    """Links to absolute paths lead to what is in the folder."""
    for link in [path for path in place.rglob("*") if path.is_symlink()]:
        target = os.readlink(link)
        if target.startswith("/"):
            link.unlink()
            link.symlink_to(os.path.relpath(f"{place}{target}", link.parent))


class Release:
    """A release of Debian for one architecture, as Debian names both."""

    def __init__(self, suite, architecture):
        self.suite = suite
        self.architecture = architecture
        self.folder = STORE / f"{suite}-{architecture}"

    def apt(self, program, *words, folder=None):
        """Runs apt-get or apt-cache on lists of this release alone."""
        settings = (f"Dir::Etc::sourcelist={self.folder}/mirror.sources",
                    "Dir::Etc::sourceparts=/dev/null", f"Dir::State::lists={self.folder}/lists",
                    "Dir::State::status=/dev/null", f"Dir::Cache={self.folder}/cache",
                    f"APT::Architecture={self.architecture}",
                    f"APT::Architectures={self.architecture}", "Acquire::Languages=none",
                    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
                    "APT::Sandbox::User=")
        return run(program, "-q", *(word for each in settings for word in ("-o", each)), *words,
                   folder=folder)

    def update(self):
        """Has the package lists."""
        stamp = self.folder / "updated"
        if is_fresh(stamp):
            return
        for name in ("lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "mirror.sources").write_text(
            f"Types: deb\nURIs: {mirror()}\nSuites: {self.suite}\nComponents: main\n"
            f"Architectures: {self.architecture}\nSigned-By: {KEYRING}\n")
        self.apt("apt-get", "update")
        stamp.touch()

    def unpack_into(self, place, package):
        """Unpacks a package over what is there."""
        download = self.folder / "download"
        shutil.rmtree(download, ignore_errors=True)
        download.mkdir(parents=True)
        self.apt("apt-get", "download", package, folder=download)
        for archive in download.glob("*.deb"):
            run("sh", "-c", f"dpkg-deb --fsys-tarfile '{archive}' | "
                f"tar -x --keep-directory-symlink -C '{place}'")
        shutil.rmtree(download)

    def tree(self, name, packages):
        """A folder with what the packages hold, lib and lib64 inside usr."""
        place = self.folder / name
        with locked(f"{self.suite}-{self.architecture}"):
            if is_fresh(place / "unpacked"):
                return place
            shutil.rmtree(place, ignore_errors=True)
            for part in ("lib", "lib64"):
                (place / "usr" / part).mkdir(parents=True)
                (place / part).symlink_to(f"usr/{part}")
            self.update()
            for package in packages:
                self.unpack_into(place, package)
            keep_links_inside(place)
            (place / "unpacked").touch()
        return place

    def depended(self, package, pattern):
        """The package, among those it depends on, whose name matches; None: there is none."""
        with locked(f"{self.suite}-{self.architecture}"):
            self.update()
        fields = self.apt("apt-cache", "show", package)
        return next(iter(re.findall(rf"^Depends:.*?\b({pattern})", fields, re.M)), None)

# SPDX-License-Identifier: MIT
"""The proof that the named allocator served a program: without it there is no number.

Each run looks for the library among the mappings (bench/launch). Before that, once for each program
and allocator, the loader is asked which library each symbol was bound to, and hakmem itself.
"""
import re
import tempfile
from pathlib import Path

from . import counters, launcher, programs

SYMBOLS = ("malloc", "free")
USES = ("malloc", "calloc", "realloc")
BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `(\w+)'")
LIBC = re.compile(r"^libc(\.so\.6|-.*\.so)$")
LOADER = re.compile(r"^(ld-linux|ld64|ld-).*\.so")
# So many samples say that a process was past its start.
SEEN_LONG = 10


class WrongAllocator(Exception):
    """Another library than the expected one served the program."""


class ForeignMalloc(WrongAllocator):
    """A file of the program calls the malloc of another library, or its own."""

    def __init__(self, file, library, peer):
        self.library = Path(library)
        self.is_its_own = Path(file).name == self.library.name
        whose = "its own malloc" if self.is_its_own else f"malloc of {self.library.name}"
        super().__init__(f"{Path(file).name} calls {whose}, not that of {expected_name(peer)}")


def environment(case, peer):
    """The variables that put a case on an allocator."""
    if not case.script:
        return peer.variables()
    library = str(peer.library) if peer.library else ""
    # A script sets LD_PRELOAD itself, for the measured program only.
    return peer.environment | {"BENCH_PRELOAD": library}


def observe(root, case, peer):
    """({file: {symbol: the library that its use of it was bound to}}, hakmem's own counters) of one
    run, the shortest that the case has."""
    with tempfile.TemporaryDirectory(prefix="hakbench-") as folder:
        watch = {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": f"{folder}/loader"}
        if not case.command:
            # All bindings are told, also of calls that this short run does not make.
            watch["LD_BIND_NOW"] = "1"
        if is_hakmem(peer):
            watch |= counters.environment(f"{folder}/counters")
        launcher.run(root, case.tiny_words(), environment(case, peer) | watch, place=case.place)
        text = "".join(path.read_text(encoding="utf-8", errors="replace")
                       for path in sorted(Path(folder).glob("loader.*")))
        report = Path(folder) / "counters"
        counted = counters.parse(report.read_text(encoding="utf-8", errors="replace")
                                 if report.exists() else "")
    found, folder = {}, case.place.folder or root
    for file, library, symbol in BINDING.findall(text):
        library = str(folder / library)
        # A program that takes malloc's address has an entry of that name that leads on to where
        # its own use is bound.
        if symbol in {*SYMBOLS, *USES} and programs.defines(library, symbol):
            found.setdefault(file, {})[symbol] = library
    return found, counted


def is_hakmem(peer):
    return bool(peer.library) and peer.library.name.startswith("libhakmem")


def check(root, case, peer):
    """Raises WrongAllocator unless the peer serves the case; returns the proof in words."""
    found, counted = observe(root, case, peer)
    if case.command:
        proof = _prove_command(peer, found)
    elif case.script:
        proof = _prove_script(case, peer, found)
    else:
        name = Path(case.tiny_words()[0]).name
        bound = next((symbols for file, symbols in found.items() if Path(file).name == name), {})
        proof = _prove(case, peer, bound)
    return proof + _own_counter(counted) if is_hakmem(peer) else proof


def check_run(peer, done, case=None):
    """Raises WrongAllocator if a run was seen without the library; of a program from elsewhere its
    largest process counts, whose memory is told."""
    if done.served is False:
        raise WrongAllocator(f"{expected_name(peer)} is not mapped into the program")
    if not case or not case.command or done.largest_served:
        return
    if done.largest_served is False:
        raise WrongAllocator(f"its largest process, {done.largest}, runs without "
                             f"{expected_name(peer)}")
    if len(done.rss) >= SEEN_LONG:
        raise WrongAllocator(f"its largest process, {done.largest}, is static")


def expected_name(peer):
    return peer.library.name if peer.library else "libc"


def mapped_end(peer):
    """How the path of the library ends among the mappings."""
    return str(peer.library.resolve()) if peer.library else "/libc.so.6"


def _prove(case, peer, bound):
    for symbol in SYMBOLS:
        library = bound.get(symbol)
        if not library or not _is_expected(library, peer):
            raise WrongAllocator(f"{case.name}: {symbol} is bound to "
                                 f"{Path(library).name if library else 'nothing'}, not to "
                                 f"{expected_name(peer)} ({peer.name})")
    return f"{' and '.join(SYMBOLS)} bound to {Path(bound['malloc']).name}"


def _prove_script(case, peer, found):
    """One program of the script, or a library of it, uses the peer; under `system` none uses
    anything but libc."""
    uses = [(Path(file).name, bound["malloc"]) for file, bound in found.items()
            if "malloc" in bound]
    good = [file for file, library in uses if _is_expected(library, peer)]
    if peer.library is None:
        other = [f"{file} uses {Path(library).name}" for file, library in uses
                 if not _is_expected(library, peer)]
        if other:
            raise WrongAllocator(f"{case.name}: {other[0]}, not libc")
    if not good:
        raise WrongAllocator(f"{case.name}: no malloc is bound to {expected_name(peer)} "
                             f"({peer.name})")
    return f"malloc of {good[0]} and {len(good) - 1} other files bound to {expected_name(peer)}"


def _prove_command(peer, found):
    """Files of the program use the peer's malloc, and none uses another; libc's own uses are no
    proof: it has some in any program."""
    names = []
    for file, symbols in found.items():
        libraries = [symbols[symbol] for symbol in USES if symbol in symbols]
        if not libraries or _is_neutral(file, peer):
            continue
        for library in libraries:
            if not _is_expected(library, peer):
                raise ForeignMalloc(file, library, peer)
        names.append(Path(file).name)
    if not names:
        raise WrongAllocator("nothing in it calls malloc: it manages its memory itself, or what "
                             "uses memory is static")
    names = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"malloc of {names} bound to {expected_name(peer)}"


def _is_neutral(file, peer):
    name = Path(file).name
    return bool(LIBC.match(name) or LOADER.match(name)) or (
        peer.library is not None and Path(file).resolve() == peer.library.resolve())


def _is_expected(library, peer):
    if peer.library is None:
        return bool(LIBC.match(Path(library).name))
    return Path(library).resolve() == peer.library.resolve()


def _own_counter(counted):
    """What hakmem itself counted: it served, and nothing went to another allocator."""
    if "fallback" not in counted:
        return "; own statistics not available"
    if counted["fallback"]:
        raise WrongAllocator(f"{counted['fallback']} requests fell back to another allocator")
    if counted.get("shadowed") or not counted.get("window_committed_bytes", 1):
        raise WrongAllocator("hakmem says that it served nothing")
    return "; own counter: 0 requests elsewhere"

# SPDX-License-Identifier: MIT
"""What a program's file says before it runs: whether a preloaded library can serve it at all."""
import functools
import os
import platform
import stat
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

# Linux follows so many #! lines.
MOST_SCRIPTS = 4
MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64", "EM_RISCV": "riscv64"}


def obstacle(path):
    """Why no preloaded library serves the program, as the end of a sentence; None if nothing is
    known to be in the way."""
    path = interpreter(Path(path))
    try:
        with path.open("rb") as file:
            return _in_elf(ELFFile(file)) or _in_rights(path)
    except (OSError, ELFError):
        return None


def interpreter(path):
    """The program that a script names in its first line; the path itself if it is no script."""
    for _ in range(MOST_SCRIPTS):
        try:
            with path.open("rb") as file:
                line = file.readline(4096)
        except OSError:
            return path
        words = line[2:].split()
        if not line.startswith(b"#!") or not words:
            return path
        path = Path(os.fsdecode(words[0]))
    return path


def _in_elf(elf):
    machine = MACHINES.get(elf["e_machine"], elf["e_machine"])
    if machine != platform.machine() or elf.elfclass != 64:
        return "is for another kind of machine"
    loader = next((segment.get_interp_name() for segment in elf.iter_segments("PT_INTERP")), None)
    if loader is None:
        return "is static: nothing can be preloaded"
    if "ld-musl" in loader:
        return "has another C library than the allocators here (musl)"
    if _defines(elf, "malloc"):
        return "defines malloc itself: a preloaded library serves nothing of it"
    return None


@functools.cache
def defines(path, symbol):
    """Whether a program or library defines the symbol, rather than only naming it; True if it
    cannot be read."""
    try:
        with open(path, "rb") as file:
            return _defines(ELFFile(file), symbol)
    except (OSError, ELFError):
        return True


def _defines(elf, name):
    symbols = elf.get_section_by_name(".dynsym")
    found = symbols.get_symbol_by_name(name) if symbols else None
    return any(symbol["st_shndx"] != "SHN_UNDEF" for symbol in found or ())


def _in_rights(path):
    about = path.stat()
    if about.st_mode & stat.S_ISUID and about.st_uid != os.getuid():
        return "is setuid: the loader preloads nothing"
    if about.st_mode & stat.S_ISGID and about.st_mode & stat.S_IXGRP \
            and about.st_gid != os.getgid():
        return "is setgid: the loader preloads nothing"
    if os.getuid() and "security.capability" in os.listxattr(path):
        return "has capabilities: the loader preloads nothing"
    return None

# SPDX-License-Identifier: MIT
"""The hot path's machine code, compared with what was reviewed.

    golden_hot_path.py [listing|pairs|bursts|random_mixed ...] [--update]

listing       kinds of instructions of malloc, free and posix_memalign, against tests/golden/
              (--update rewrites it)
pairs         instructions per call of malloc, free and aligned_alloc, counted by callgrind
bursts        the same where bins are refilled and flushed all the time
random_mixed  instructions per cycle of the whole benchmark, counted by callgrind

A count is the difference between a run of N and a run of 2N, so that starting up costs nothing.
Environment: OUT, the build folder (out/release).
"""
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = Path(os.environ.get("OUT", ROOT / "out/release"))
LIBRARY = OUT / "libhakmem.so"
LISTING = ROOT / "tests/golden/hot_path_gcc12_x86_64.txt"
LISTED = ("malloc", "free", "posix_memalign")

# The most that was agreed to, return included. Lower is an improvement: lower these with it.
MALLOC_INSTRUCTIONS = 18
FREE_INSTRUCTIONS = 25
LARGER_INSTRUCTIONS = 24
ALIGNED_INSTRUCTIONS = 41
CYCLE_INSTRUCTIONS = 47.5
# Of refills and flushes, for each of the blocks that they move, by the order of the frees.
REFILL_INSTRUCTIONS = {"ordered": 10, "random": 18.5}
FLUSH_INSTRUCTIONS = {"ordered": 12, "random": 53}
BURST_BLOCKS = 20000
BURST_ORDERS = {"ordered": 1, "random": 3}  # bench/workloads/burst.c

# Callgrind counts a copy by `rep movsb` as an instruction for each byte; glibc has other ways.
COPIED_BY_WORDS = ":".join(f"glibc.cpu.x86_rep_{name}_threshold={1 << 30}"
                           for name in ("movsb", "stosb"))


def run(*command, **options):
    words = [str(word) for word in command]
    done = subprocess.run(words, text=True, capture_output=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def exported_functions():
    """name -> address; ends the program where there is no malloc, rather than count libc's."""
    symbols = {}
    for line in run("nm", "-D", "--defined-only", LIBRARY).splitlines():
        address, _, name = line.split()
        symbols[name] = int(address, 16)
    if not {"malloc", "free"} <= symbols.keys():
        sys.exit(f"{LIBRARY.name} defines no malloc and free")
    return symbols


def hot_instructions(function):
    """Mnemonics from the entry of a function to the first instruction that leaves it for good."""
    start = exported_functions()[function]
    code = run("objdump", "-d", "--no-show-raw-insn", f"--start-address={start}",
               f"--stop-address={start + 1024}", LIBRARY)
    mnemonics = []
    for line in code.splitlines():
        match = re.match(r"\s+[0-9a-f]+:\t(\S+)", line)
        if not match:
            continue
        mnemonics.append(match[1])
        if match[1] in ("ret", "jmp"):
            return mnemonics
    sys.exit(f"{function}: no end within 1024 bytes")


def listing(update):
    text = ""
    for function in LISTED:
        mnemonics = hot_instructions(function)
        text += f"{function}: {len(mnemonics)}\n" + "".join(f"    {word}\n" for word in mnemonics)
    if update:
        LISTING.write_text(text)
        print(f"wrote {LISTING.relative_to(ROOT)}")
        return True
    wanted = LISTING.read_text() if LISTING.exists() else ""
    if text == wanted:
        print(f"listing: as reviewed ({text.count(chr(10)) - len(LISTED)} instructions)")
        return True
    print("".join(difflib.unified_diff(wanted.splitlines(True), text.splitlines(True),
                                       "reviewed", "built")))
    print("listing: the hot path has changed; if that is an improvement, ./hak golden --update")
    return False


def counted(program, arguments, inside=()):
    """Instructions of a run under hakmem, all or in the named functions and what they call. The
    least of two: in one of them a slow path may have come by the clock."""
    return min(counted_once(program, arguments, inside) for _ in range(2))


def counted_once(program, arguments, inside):
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder, "profile")
        run("valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}",
            *(f"--toggle-collect={function}" for function in inside), program, *arguments,
            env={**os.environ, "LD_PRELOAD": str(LIBRARY), "GLIBC_TUNABLES": COPIED_BY_WORDS})
        return int(re.search(r"^(?:totals|summary): (\d+)", profile.read_text(), re.M)[1])


def instructions_each(program, count, *arguments, before=(), inside=()):
    """By the argument behind those `before`, which says how often."""
    once, twice = (counted(program, [*before, times * count, *arguments], inside)
                   for times in (1, 2))
    return (twice - once) / count


def within(what, measured, most):
    verdict = "nothing was counted" if measured <= 1 else "ok" if measured <= most else "too many"
    print(f"{what}: {measured:.2f} instructions, at most {most}: {verdict}")
    return verdict == "ok"


def names_of(name):
    """The libc name and ours are one address; which of the two valgrind shows is its own choice."""
    return name, f"hak_{name}"


def pairs(_update):
    results = []
    for what, most, function, *arguments in (
            ("malloc of 64 bytes", MALLOC_INSTRUCTIONS, "malloc"),
            ("free of 64 bytes", FREE_INSTRUCTIONS, "free"),
            ("malloc of 48 KiB", LARGER_INSTRUCTIONS, "malloc", 0, 49152),
            ("aligned_alloc of 5 pages", ALIGNED_INSTRUCTIONS, "aligned_alloc", 4096, 20480)):
        measured = instructions_each(OUT / "tests/golden_pairs", 20000, *arguments,
                                     inside=names_of(function))
        results.append(within(what, measured, most))
    return all(results)


def bursts(_update):
    results = []
    for name, hot, most in (("malloc", MALLOC_INSTRUCTIONS, REFILL_INSTRUCTIONS),
                            ("free", FREE_INSTRUCTIONS, FLUSH_INSTRUCTIONS)):
        for order, most_beside in most.items():
            measured = instructions_each(OUT / "burst_system", 10, 64, 65, 42,
                                         before=(BURST_ORDERS[order], BURST_BLOCKS),
                                         inside=names_of(name)) / BURST_BLOCKS
            results.append(within(f"{name} in bursts, freed {order}", measured, hot + most_beside))
    return all(results)


def random_mixed(_update):
    measured = instructions_each(OUT / "bench_random_mixed_system", 200000, 8192)
    return within("cycle of bench_random_mixed 8192", measured, CYCLE_INSTRUCTIONS)


def main():
    parts = {"listing": listing, "pairs": pairs, "bursts": bursts, "random_mixed": random_mixed}
    words = [word for word in sys.argv[1:] if word != "--update"]
    update = "--update" in sys.argv
    if any(word not in parts for word in words):
        sys.exit(__doc__)
    exported_functions()
    results = [parts[word](update) for word in words or parts]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

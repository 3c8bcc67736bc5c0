#!/usr/bin/env python3
"""Writes docs/CONFIG.md, docs/STATS.md, docs/POLICY.md, docs/stats.schema.json, docs/hakmem.conf
and what docs/man and docs/migrate list from the tables in the headers.

gen_docs.py          writes them
gen_docs.py --check  exits 1 and names each one that is not what it would write
"""
import json
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNITS = {"HAK_KIB": 1 << 10, "HAK_MIB": 1 << 20, "HAK_GIB": 1 << 30, "HAK_TIB": 1 << 40}
CONFIG_TEXT = """# Options

Few programs need any. The five most important:

| option | set it to | and get |
| --- | --- | --- |
| `price` | `compact` where memory is scarce, `speed` where it is plentiful | smaller or larger \
caches; memory is returned sooner or later |
| `decay` | a longer time, where load varies within seconds | fewer page faults, more memory \
held between peaks |
| `limit` | the size that the program must not exceed | requests beyond it are refused |
| `stats` | `text`, to see where the memory is and what would help | a summary at exit \
([STATS.md](STATS.md)) |
| `mode` | `hardened`, for programs that read untrusted input | misuse aborts the program \
([HARDEN.md](HARDEN.md)) |

[BLOAT.md](BLOAT.md) shows how to find the option that makes a process smaller.

## Where settings come from

Settings are read at process start. Later sources win:

1. the built-in values, and those that `mode` and `price` imply (tables below);
2. `/etc/hakmem.conf`: lines of `name = value`, `#` begins a comment, at most 16 KiB
   ([hakmem.conf](hakmem.conf) lists all options as comments);
3. the program itself: `const char *hakmem_conf = "name=value,name=value";`
4. `HAKMEM_CONF="name=value,name=value"` in the environment;
5. `HAKMEM_<NAME>=value` in the environment, the name in capitals.

How they are written and read:

* In 2 to 4, and after `-o` of `hakmem run`, `:` and `=` are the same, white space around names and
  values is ignored, and `HAKMEM_DECAY` is another name of `decay`.
* Sizes take K, M, G, T; times take ms or s, and -1 or `never`.
* Where a choice begins with off, 0 and no also mean off. There 1, yes and on mean on; if the choice
  has no on, they mean its second word.
* A set is words joined by +, or `all` (also 1, yes, on), or `none` (also 0, no, off). For sizes,
  times and counts, 0 and 1 are numbers.
* In 5, an empty value counts as not set. Texts differ: `HAKMEM_STATS_FILE=` empties the option,
  whatever 2 to 4 say.
* An invalid name or value is ignored. It is reported once on standard error, as typed, with the
  accepted values or the nearest name. One line also reports a `profile` that has no effect because
  nothing is learned.
* Programs with raised privileges ignore the environment.
* `HAKMEM_SHOW_CONF=1` prints the values in force and their sources; `hakmem options` prints the
  same from a shell. `HAKMEM_ABORT_CONF=1` makes an invalid setting fatal, but not a refused file of
  `profile`.

## All options

"""
SAMPLE_TEXT = """# /etc/hakmem.conf: options of all programs of this machine that run with hakmem.
#
# Lines of `name = value`; a # begins a comment. Below are all options with their default values:
# remove the # before those that you change. Sizes take K, M, G and T, times ms and s, and `never`.
# HAKMEM_CONF and HAKMEM_<NAME> in a program's environment win over this file. `hakmem options`
# shows the values in force, and reports errors in this file.
"""
MODES_TEXT = """
## Modes

A mode is a set of option values; all modes run the same machine code. Options that are set
explicitly keep their values. Values in bold differ from the default.

`learning` enables all learning: how long to keep free memory, as in `balanced`; which call sites
allocate long-lived blocks (below); and tuning values, which are tried in matches
([MATCHES.md](MATCHES.md)). `research` learns the same but applies nothing: `hakmem elo`,
`hakmem rules`, `hakmem top` and the statistics at exit show the results. It also turns on crash
reports. `realtime` takes memory before `main` and returns none, so that requests do not wait for
the kernel ([LATENCY.md](LATENCY.md)).

"""
LEARNED_TEXT = """
## What is learned, from run to run

Start with [LEARNING.md](LEARNING.md).

    HAKMEM_MODE=learning HAKMEM_PROFILE=/var/cache/me/learned server

With `profile` a program starts with what its previous runs learned: how long free memory is worth
keeping (`learn`), what its matches showed ([MATCHES.md](MATCHES.md)), and how much memory it used
in its first second. The last is information only: the value of `prewarm` that would move these page
faults before `main`, where that is worth the memory
([adr/0043](adr/0043-what-is-learned-must-pay.md)). The file is read at start and written when the
process calls `exit` or returns from `main`.

* One file serves up to 32 programs, told apart by the last part of the path that started them;
  child processes that run other programs inherit the option and count among them. A forked child
  writes nothing.
* Evidence counts half in the next run. It is used only with the same `decay` and `price`.
* The file is text of at most 36 KiB with a checksum. It is replaced atomically: a full disk, or a
  directory that cannot be written, costs one line on standard error.
* The file is ignored, with one line, and never written, if it is a symbolic link or not a regular
  file, belongs to another user, is writable by others, was modified, or was written by another
  version or for another page size or other size classes; and in programs with raised privileges. An
  empty file counts as none.
* `hakmem learned show FILE` prints it, `diff` compares two, `merge` combines several, and `lint`
  reports errors.

## Call sites of long-lived blocks

    HAKMEM_LEARN=big_cache+decay+sites HAKMEM_PROFILE=/var/cache/me/learned server &
    hakmem rules $!

With `learn=sites` hakmem samples blocks of up to 4 KiB and finds the call sites that allocate
long-lived ones. Their blocks go to slabs of their own and no longer pin pages among short-lived
blocks. This pays where bursts of short-lived blocks leave a few long-lived ones behind.
`hakmem rules` shows the rules: `active     server+0x12bb, 128 bytes: 97 % of 412 samples outlived
two generations` (a generation is 64 MiB of allocations, or as much as the heap holds).

* A rule is a `candidate` until the evidence excludes chance, then a `shadow` until it would save
  more than it costs, a `canary` for half of the blocks, then `active`; it is `retired` when it no
  longer pays. A site with callers of both kinds is `mixed`, and its callers are told apart; so
  is a caller with callers of both kinds.
* `hakmem rules PID pin SITE BYTES` activates a rule at once, `forbid` excludes a site, and `free`
  undoes either; with a file in place of PID, this applies from the next run. `export` and `import`
  copy rules between machines or files.
* Requests of a size class that has an active rule take a few nanoseconds longer.
"""
MODE_COSTS_TEXT = """
The cost of a mode, in instructions relative to `minimal`, counted by callgrind for each benchmark
that has one thread, one process and no clock (22 November 2026, gcc 12, x86-64;
`tools/mode_costs.py --table`). `./hak test --full` fails where a mode takes more than 1 % and
10,000 instructions more.

| benchmark | minimal, million instructions | balanced | fast | learning |
| --- | --- | --- | --- | --- |
| `bench_random_mixed 1000000 256 42` | 44.3 | -0.01 % | -0.00 % | -0.00 % |
| `bench_random_mixed 1000000 8192 42` | 45.1 | -0.01 % | -0.36 % | -0.00 % |
| `bench_random_mixed 1000000 16384 42` | 46.0 | -0.01 % | -1.08 % | -0.01 % |
| `burst 1 10000 2 16 512 42` | 3.5 | -0.11 % | -10.26 % | -0.07 % |
| `burst 3 10000 2 16 512 42` | 4.4 | -0.08 % | -17.99 % | -0.05 % |
| `transactions 1 10000 100 64 42` | 70.2 | -0.01 % | -0.00 % | -0.00 % |
| `bench_mid_large_mt 1 20000 64 8192 32768 42` | 4.0 | -0.10 % | -26.65 % | -0.07 % |
| `realloc_growth 16 1048576 2 10000 42` | 13.2 | -0.03 % | -0.06 % | -0.02 % |
| `big_buffers 10 2 5242880 6291456 42` | 58.4 | -0.01 % | -0.00 % | -0.00 % |
| `touch_free 262144 1000 0 1 2` | 3.5 | -0.13 % | +0.01 % | -0.06 % |
| `touch_free 4194304 100 0 1 2` | 3.5 | -0.06 % | +0.01 % | -0.04 % |
| `calloc_large 2 1048576 1` | 0.2 | -1.63 % | +0.30 % | -0.61 % |
| `huge_lookup 1 64 10000 42` | 2.6 | -0.14 % | -0.00 % | -0.08 % |
| `valley 20000 99 5 1000 5 42` | 22.5 | -0.01 % | -1.69 % | -0.01 % |
"""
PRICES_TEXT = """
## Prices

`price` says what memory costs relative to time. The upper rows are options, which can also be set
individually; the lower rows are policy values ([POLICY.md](POLICY.md)) that only `price` sets.

Measured with speed, even and compact: `bench_random_mixed 2000000 200000 42` takes 108.0, 109.8 and
136.9 million instructions (callgrind); with 2,000 live blocks instead of 200,000, speed and even
are equal and compact takes 14 % more. `phase_server 800 20000 2 42` has 29.6, 11.4 and 8.9 MiB
resident after its load drops.

"""
STATS_TEXT = """# Statistics

Five numbers matter most. `HAKMEM_STATS=text` opens with them, `hakmem stats FILE` shows them for a
file in any form, and `malloc_stats` prints them immediately. The line `advice` names an option
where one is known to help. [BLOAT.md](BLOAT.md) has symptoms and a worked example.

| number | meaning | if it is large |
| --- | --- | --- |
| fragmentation | `own_resident_bytes` / `live_bytes` | check which of the next four is the cause |
| free | `slab_free_bytes`: in slabs, beside live blocks of the same size | a few live blocks pin \
whole pages: free long-lived blocks, or give them a heap of their own (`hakmem_heap_new`) |
| cached | `cached_bytes`: in caches, ready for the next requests | `HAKMEM_PRICE=compact`; with \
per-thread caches, `HAKMEM_CACHES=processor` |
| kept | `slab_warm_bytes` and `span_warm_bytes`: free and resident | it is returned after \
`decay`; a shorter `HAKMEM_DECAY`, `HAKMEM_FREE_POLICY=adaptive`, a lower `HAKMEM_PREWARM` |
| resident | `resident_bytes`, of the process | what exceeds `own_resident_bytes` is not \
hakmem's: stacks, files, other mappings |

## How to get them

`HAKMEM_STATS=text`, `raw`, `json`, `xml`, `openmetrics` or `exact` prints at exit, to standard
error or to the file that `HAKMEM_STATS_FILE` names (`%p` in the name becomes the process id).
`HAKMEM_STATS_INTERVAL=10s` also prints periodically, `HAKMEM_STATS_SIGNAL=USR2` on receipt of the
signal; both print text if `HAKMEM_STATS` is not set. A program can call `hakmem_stats_print` for
one of these forms, or for `summary`. All are made from one snapshot, and all but `text` contain all
numbers. In these, `policy_decay_ms`, `span_keep_ms` and `pool_keep_ms` are -1 for never.

| form | content |
| --- | --- |
| `text` | for people: the summary, then tables with units, without zeros |
| `raw` | lines of `name: value`; the last one, `rows`, counts the others |
| `json` | one object in one line (stats.schema.json), so that a file can hold many |
| `xml` | as `malloc_info` writes it: glibc's elements, then `<counter>`, `<class>`, `<cache>`, \
`<heap>` |
| `openmetrics` | `hakmem_NAME` as gauges and counters, labelled by size, lock, cache or heap |
| `exact` | as `text`, with every request counted (see below) |

**Does hakmem serve?** `fallback: 0` means that no request was passed to another allocator.
`shadowed: 0` means that hakmem received the requests. A program that defines malloc itself, or gets
it from a library preloaded before hakmem, maps hakmem but is not served by it: `shadowed` is 1, and
one line on standard error reports it.

**Requests are not counted.** The hot path counts nothing, so there is no number of requests and no
hit rate, except with `HAKMEM_STATS=exact`. Nothing is estimated.

**Interval and signal** are checked by slow paths and by the background thread, which is started for
them regardless of the size of the process; with `HAKMEM_MAINTENANCE=off` only slow paths check. A
program that handles the signal before hakmem starts still receives it; a handler installed later
replaces hakmem's.

**At exit** means a call of `exit` or a return from `main`. A process that is killed by a signal
(SIGTERM without a handler, say) or calls `_exit` prints nothing; `HAKMEM_STATS_INTERVAL` leaves the
numbers of the last interval. With `HAKMEM_STATS_SHM=1`, `hakmem top PID --once` shows those of the
last second, until the next process of the same user that publishes removes them.

**The file** is opened at process start and stays open, so that a server that drops privileges later
still writes to it, and writing continues after a rename. Children of fork append to the same file;
with `%p` in the name each has its own, opened when it first prints, with the privileges it has
then. A file that cannot be written costs one line on standard error. Symbolic links are followed:
choose a folder that only trusted users can write to, not /tmp.

**A full pipe or socket** is waited for, a second at most for each 4 KiB. If its reader takes
nothing for so long, the rest of the report is lost, and so are later ones until it reads again.
Signals reach the program meanwhile.

**Standard error** is that of process start, through a duplicate descriptor; never another file that
the program has opened under its number ([SECURITY.md](../SECURITY.md)). `malloc_stats` prints to
the standard error of the moment, as glibc's does.

**Size classes.** For each class in use: `slabs`; the blocks that are `live`, `cached` (in caches or
not collected yet) and `free` in slabs; and `taken`, the blocks that left slabs since the start, for
bins or for the program. `taken` is exact and shows the size distribution in slow paths; a class
whose blocks circulate in bins shows little of its traffic. It is not a number of requests.
"""
MEMBERS_TEXT = """
## Each cache and each heap

The first 64 caches, by processor or thread number, and the first 64 heaps. In the raw form they are
`processor_0_bytes`, `thread_7_misses`, `heap_1_steals`; in JSON the lists `caches` and `heaps`.
`rseq` tells whether caches belong to a `processor` or a `thread`, and `rseq_reason` why; in the raw
form it is a number from the second table.

"""
EXACT_TEXT = """
## Requests, with `HAKMEM_STATS=exact` only

Bins stay empty, so every malloc and every free takes the slow path and is counted exactly, in all
threads and in signal handlers. This is slow: `bench_random_mixed` takes 469 instructions a cycle
instead of 43 (callgrind). Use it to examine a program.

In all other modes these rows are absent, not 0, in every form. `class_SIZE_requests` and
`class_SIZE_reallocs` (in JSON and XML `requests` and `reallocs` of a class) count the requests for
sizes that the class serves.

* A `realloc` counts as one call, even if it allocates a new block and frees the old one.
* Requests that are refused for their arguments (a wrong alignment, a product that overflows, more
  than PTRDIFF_MAX) are not counted; requests refused for lack of memory are.
* `hakmem_heap_destroy` counts no frees. What libc allocates for hakmem's own thread is not counted.
* There is no hit rate, since no bin is ever hit. In all other modes `refills` and `flushes` are the
  misses, counted exactly.

"""
LOCKS_TEXT = """
## Locks

How often a thread found each lock held, and the total nanoseconds that all threads waited for it.
An uncontended lock is not counted and costs nothing extra.

"""
DECISIONS_TEXT = """
## Decisions

`hakmem top` shows the latest, and so does a crash report (`HAKMEM_CRASH_REPORT=1`). Where hakmem
was built with systemtap-sdt-dev, each of these events, and each slow-path counter, is a USDT probe
with its name and number. A tracer can count and time them and take stacks while the program runs:
`bpftrace -e 'usdt:/usr/lib/libhakmem.so:hakmem:refills { @[ustack] = count(); }'`. `readelf -n`
lists them.

"""
POLICY_TEXT = """# Policy

The tuning values that the allocator reads. Each stays within its bounds, so that a bad value makes
hakmem slow or large, never incorrect. Options set some of them ([CONFIG.md](CONFIG.md)).

"""
NEVER = ("HAK_CONF_NEVER_MS", "UINT64_MAX / 2")


def rows(header, table):
    """The arguments of each X(...) row of one table, as lists of text."""
    text = (ROOT / "src" / header).read_text().replace("\\\n", " ")
    line = next(part for part in text.splitlines() if part.startswith(f"#define {table}(X)"))
    found = re.findall(r"\bX\(((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*)\)", line.split(")", 1)[1])
    return [[cell.strip() for cell in re.findall(r"(?:\"[^\"]*\"|[^,\"])+", row)] for row in found]


def words(cell):
    """A C string literal, or several in a row, as text."""
    return "".join(re.findall(r"\"([^\"]*)\"", cell)).replace("|", "\\|")


def number(cell, unit):
    """A numeric cell for readers: 2 MiB, 125 ms, never."""
    if cell in NEVER:
        return "never"
    product = 1
    for factor in cell.split("*"):
        factor = factor.strip()
        product *= UNITS.get(factor) or int(factor)
    if unit != "bytes":
        return f"{product} {unit}".strip()
    for name, scale in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if product and product % scale == 0:
            return f"{product // scale} {name}"
    return f"{product}"


def table(head, body):
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def options():
    """Of each option: its name, default, what is accepted, and its meaning."""
    for name, kind, default, least, most, choices, meaning in rows("conf/conf_table.h",
                                                                   "HAK_CONF_TABLE"):
        if kind == "CHOICE":
            names = words(choices).split("\\|")
            default, accepted = names[int(default)], ", ".join(names)
        elif kind == "SET":
            names = words(choices).split("\\|")
            mask = int(default, 0)
            default = "none" if mask == 0 else "+".join(
                name for bit, name in enumerate(names) if mask >> bit & 1)
            accepted = "none, all, or some of these, joined by +: " + ", ".join(names)
        elif kind == "TEXT":
            default, accepted = "", words(choices) or "up to 255 characters"
        else:
            unit = {"BYTES": "bytes", "MS": "ms", "COUNT": ""}[kind]
            accepted = f"{number(least, unit)} to {number(most, unit)}"
            default = number(default, unit)
        yield name, default, accepted, words(meaning)


def implied(table_name):
    """Of each word of a choice, in order: the options that it sets, as a dictionary."""
    return {word: dict(pair.split(":", 1) for pair in words(cell[0] if cell else "").split(",")
                       if pair)
            for word, *cell in rows("conf/conf_modes.h", table_name)}


def marked(value, default):
    """The value of a mode, bold if it is not the default; 8M is shown as 8 MiB, 1s as 1 s."""
    if value is None:
        return default
    found = re.fullmatch(r"(\d+)([KMGT]|ms|s)", value)
    if found:
        unit = found[2]
        value = f"{found[1]} {unit + 'iB' if unit in 'KMGT' else unit}"
    return value if value == default else f"**{value}**"


def modes():
    """The table of modes and that of prices"""
    by_mode, by_price = implied("HAK_CONF_MODE_TABLE"), implied("HAK_CONF_PRICE_TABLE")
    body, priced = [], []
    for name, default, _, _ in options():
        if name == "mode":
            continue
        line = [f"`{name}`"]
        for sets in by_mode.values():
            price = by_price[sets.get("price", "even")]
            line.append(marked(sets.get(name, price.get(name)), default))
        body.append(line)
        if any(name in sets for sets in by_price.values()):
            priced.append([f"`{name}`", *(marked(sets.get(name), default)
                                          for sets in by_price.values())])
    for name, *cells in rows("policy/policy_table.h", "HAK_POLICY_PRICE_TABLE"):
        unit = "bytes" if name.endswith("_bytes") else "ms" if name.endswith("_ms") else ""
        cells = [number(cell, unit) for cell in cells]
        priced.append([name, *(marked(cell, cells[1]) for cell in cells)])
    return (MODES_TEXT + table(["option", *by_mode], body) + MODE_COSTS_TEXT +
            LEARNED_TEXT +
            PRICES_TEXT + table(["", *by_price], priced))


def config():
    """docs/CONFIG.md"""
    body = [[f"`{name}`", *others] for name, *others in options()]
    return CONFIG_TEXT + table(["option", "default", "accepted", "meaning"], body) + modes()


def generated(text, what, singular, lines):
    """A manual with the lines between its two remarks on `what` replaced"""
    opens = f'.\\" The {what} are generated from their table.\n'
    ends = f'.\\" End of the {what}.\n'
    before, found, rest = text.partition(opens)
    _, also, after = rest.partition(ends)
    if not found or not also:
        sys.exit(f"a manual has no place for each {singular}")
    return before + opens + "\n".join(lines) + "\n" + ends + after


def manual_options(form):
    """The options as a list of mdoc"""
    lines = [".Bl -tag -width Ds"]
    for name, default, accepted, meaning in options():
        lines.append(form(name))
        sentence = f"{meaning}; {accepted}" + (f", {default} if not set" if default else "")
        lines += textwrap.wrap(sentence.replace("\\|", "|").replace("-", "\\-") + ".", 78)
    return [*lines, ".El"]


def manual():
    """docs/man/hakmem.3"""
    text = (ROOT / "docs/man/hakmem.3").read_text()
    return generated(text, "options", "option",
                     manual_options(lambda name: f".It Ev HAKMEM_{name.upper()}"))


def synopsis(arguments):
    """The lines of a manual page for arguments such as [-o NAME=VALUE]... PID | FILE"""
    lines, depth, goes_on = [], 0, False
    for word in arguments.split():
        bare = word.strip("[].")
        if bare.startswith("-"):
            mark = f"Fl {bare[1:]}".replace("Fl -", "Fl \\-")
        elif bare == "|":
            mark = bare
        else:
            mark = ("Cm " if bare.islower() else "Ar ") + bare.replace("=", " Ns = Ns Ar ")
        mark = "Op " * word.count("[") + mark + (" ..." if "..." in word else "")
        if bare == "|" and depth == 0 and lines[-1].startswith(".Op "):
            lines.append(r".No \&|")  # else what follows would be in the option's brackets
        elif depth > 0 or goes_on or bare == "|":
            lines[-1] += " " + mark
        else:
            lines.append("." + mark)
        depth += word.count("[") - word.count("]")
        goes_on = bare == "|"
    return lines


def command_manual():
    """docs/man/hakmem.1"""
    text = (ROOT / "docs/man/hakmem.1").read_text()
    lines = []
    for name, arguments, *_ in rows("../cli/command.h", "COMMAND_TABLE"):
        lines += [".Nm", f".Cm {name}", *synopsis(words(arguments).replace("\\|", "|"))]
    text = generated(text, "subcommands", "subcommand", lines)
    text = generated(text, "options", "option", manual_options(lambda name: f".It Cm {name}"))
    lines = [".Bl -tag -width Ds"]
    for mode, sets in implied("HAK_CONF_MODE_TABLE").items():
        values = ", ".join(f"{name} {value}" for name, value in sets.items())
        lines += [f".It Cm {mode}", *textwrap.wrap(values or "the defaults", 78)]
    return generated(text, "modes", "mode", [*lines, ".El"])


def sample():
    """docs/hakmem.conf"""
    lines = [SAMPLE_TEXT]
    for name, default, accepted, meaning in options():
        accepted = re.sub(r"(\d) ([KMGT]|ms)(iB)?", r"\1\2", accepted)
        sentence = f"{meaning}. Accepted: {accepted}."
        lines += textwrap.wrap(sentence.replace("\\|", "|"), 94, initial_indent="# ",
                               subsequent_indent="# ")
        value = default.replace(" ", "").replace("iB", "")
        lines.append(f"#{name} = {value}\n".replace(" = \n", " =\n"))
    return "\n".join(lines)


def migration(allocator):
    """A function that writes docs/migrate/ALLOCATOR.md"""
    opens = "<!-- The options are generated from cli/migrate_table.h. -->\n"
    ends = "<!-- End of the options. -->\n"

    def page():
        text = (ROOT / f"docs/migrate/{allocator}.md").read_text()
        before, rest = text.split(opens)
        body = []
        for _, name, ours, form, *note in rows("../cli/migrate_table.h",
                                              f"MIGRATE_{allocator.upper()}"):
            ours, form = words(ours), words(form)
            pairs = form.split(",") if "=" in form else []
            values = ", ".join(f"{'any value' if word == '*' else word} is {to}" for word, to in
                               (pair.split("=") for pair in pairs))
            values = values or {"lg": "a power of two: 19 is 512 KiB"}.get(form, "")
            remark = "; ".join(part for part in (values, words(note[0]) if note else "") if part)
            body.append([f"`{words(name)}`", f"`{ours}`" if ours else "none", remark])
        return (before + opens + "\n" + table([allocator, "hakmem", ""], body) + "\n" + ends +
                rest.split(ends)[1])

    return page


def stats():
    """docs/STATS.md"""
    parts = [("Memory, at the moment of printing", "stats/snapshot.h",
              "HAK_SNAPSHOT_LEVEL_TABLE"),
             ("Memory and system calls, since the start", "stats/snapshot.h",
              "HAK_SNAPSHOT_TOTAL_TABLE"),
             ("Counters of the process", "stats/counters.h", "HAK_STAT_GLOBAL_TABLE"),
             ("Counters of slow paths, summed over all threads", "stats/counters.h",
              "HAK_STAT_TABLE")]
    text = STATS_TEXT
    for title, header, name in parts:
        body = [[f"`{row[0]}`", words(row[1])] for row in rows(header, name)]
        text += f"\n## {title}\n\n" + table(["name", "meaning"], body)
    body = [[f"`{name}`", words(meaning)]
            for kind in ("CACHE", "HEAP")
            for name, _, meaning in rows("stats/snapshot.h", f"HAK_SNAPSHOT_{kind}_TABLE")]
    text += MEMBERS_TEXT + table(["name", "meaning"], body)
    body = [[f"{number}", "processor" if number == 0 else "thread", words(row[1])]
            for number, row in enumerate(rows("os/rseq.h", "HAK_RSEQ_TABLE"))]
    text += "\n" + table(["`rseq_reason`", "`rseq`", "meaning"], body)
    body = [[f"`{row[0]}`", words(row[1])]
            for row in rows("stats/snapshot.h", "HAK_SNAPSHOT_EXACT_TABLE")]
    text += EXACT_TEXT + table(["name", "meaning"], body)
    body = [[f"`waits_{row[1]}`, `waited_ns_{row[1]}`", words(row[2])]
            for row in rows("os/lock.h", "HAK_LOCK_TABLE")]
    text += LOCKS_TEXT + table(["names", "what the lock protects"], body)
    body = [[f"`{row[0]}`", words(row[1]), words(row[2])]
            for row in rows("stats/event_log.h", "HAK_EVENT_TABLE")]
    return text + DECISIONS_TEXT + table(["name", "number", "meaning"], body)


def policy():
    """docs/POLICY.md"""
    body = []
    for name, default, least, most, meaning in rows("policy/policy_table.h", "HAK_POLICY_TABLE"):
        unit = name.rsplit("_", 1)[1]
        unit = unit if unit in ("bytes", "ms") else ""
        body.append([f"`{name}`", number(default, unit), number(least, unit), number(most, unit),
                     words(meaning)])
    return POLICY_TEXT + table(["row", "default", "least", "most", "meaning"], body)


def schema():
    """docs/stats.schema.json: JSON Schema of the JSON form"""
    count = {"type": "integer", "minimum": 0}
    time = {"type": "integer", "minimum": -1}
    may_be_never = {"decay_ms", "span_keep_ms", "pool_keep_ms"}

    def strict(members, **more):
        return {"type": "object", "additionalProperties": False, "required": list(members),
                "properties": members, **more}

    def group(header, table_name, name=0, meaning=1):
        return strict({row[name]: {**(time if row[name] in may_be_never else count),
                                   "description": words(row[meaning]).replace("\\|", "|")}
                       for row in rows(header, table_name)})

    lock = strict({"waits": count, "waited_ns": count})
    size = strict({name: count for name in ("block_bytes", "slabs", "live_blocks",
                                            "cached_blocks", "free_blocks", "taken_blocks",
                                            "popped_blocks")})
    size["properties"] |= {name: {**count, "description": "with stats=exact"}
                           for name in ("requests", "reallocs")}
    cache = group("stats/snapshot.h", "HAK_SNAPSHOT_CACHE_TABLE", meaning=2)
    cache["properties"] |= {name: {**count, "description": f"number of the {name}'s cache"}
                            for name in ("processor", "thread")}
    heap = group("stats/snapshot.h", "HAK_SNAPSHOT_HEAP_TABLE", meaning=2)
    heap["properties"]["id"] = {**count, "description": "number of the heap"}
    heap["required"].append("id")
    number_of_schema = re.search(r"HAK_EMIT_JSON_SCHEMA (\d+)",
                                 (ROOT / "src/stats/emit.h").read_text())[1]
    whole = strict({
        "schema": {"const": int(number_of_schema)},
        "version": {"type": "string"},
        "pid": count,
        "unix_ms": {**count, "description": "when it was taken, since 1970"},
        "rseq": {"enum": ["processor", "thread"], "description": "what the caches belong to"},
        "rseq_reason": {"type": "string", "description": "and why"},
        "rseq_id": {"enum": ["slot", "cpu_id", "mm_cid"],
                    "description": "by which number they are told apart"},
        "memory": group("stats/snapshot.h", "HAK_SNAPSHOT_LEVEL_TABLE"),
        "totals": group("stats/snapshot.h", "HAK_SNAPSHOT_TOTAL_TABLE"),
        "process": group("stats/counters.h", "HAK_STAT_GLOBAL_TABLE"),
        "slow_paths": group("stats/counters.h", "HAK_STAT_TABLE"),
        "locks": strict({row[1]: {**lock, "description": words(row[2])}
                         for row in rows("os/lock.h", "HAK_LOCK_TABLE")}),
        "policy": group("policy/policy_table.h", "HAK_POLICY_TABLE", meaning=4),
        "classes": {"type": "array", "items": size, "description": "size classes in use"},
        "caches": {"type": "array", "items": cache,
                   "description": "the first 64"},
        "heaps": {"type": "array", "items": heap,
                  "description": "the first 64 heaps that all threads share"},
    })
    whole["properties"]["exact"] = {**group("stats/snapshot.h", "HAK_SNAPSHOT_EXACT_TABLE"),
                                    "description": "with stats=exact"}
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema",
                       "title": "hakmem statistics", **whole}, indent=1) + "\n"


def main():
    """Writes or checks."""
    stale = []
    for name, make in (("CONFIG.md", config), ("STATS.md", stats), ("POLICY.md", policy),
                       ("stats.schema.json", schema), ("hakmem.conf", sample),
                       ("migrate/jemalloc.md", migration("jemalloc")),
                       ("migrate/tcmalloc.md", migration("tcmalloc")),
                       ("migrate/mimalloc.md", migration("mimalloc")),
                       ("man/hakmem.3", manual), ("man/hakmem.1", command_manual)):
        path = ROOT / "docs" / name
        text = make()
        if "--check" in sys.argv:
            if not path.exists() or path.read_text() != text:
                stale.append(f"docs/{name} is not what its table says: run ./hak docs")
        else:
            path.write_text(text)
    print("\n".join(stale), end="\n" if stale else "")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())

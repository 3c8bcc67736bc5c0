#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What each member of the option harden costs: writes the tables of docs/HARDEN.md.

    ./hak harden-prices                 instructions, peak memory and memory system calls
    ./hak harden-prices --time          wall time, on a machine that does nothing else
    ./hak harden-prices --only A,B      cases whose name contains a word; prints, writes nothing

Each member runs alone, and all together as mode hardened, beside mode balanced. Instructions are
counted by callgrind, which sees no kernel: what guards cost there is in the system calls. Times
are measured in rounds that begin with another member each; a figure is the median of the ratios
within a round, and what balanced differs from itself by is the floor.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import gen_docs
from hakbench import counts, environment, launcher, stats

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/HARDEN.md"
REPEATS = 9
MEMORY_RUNS = 3

PYTHON = (ROOT / "bench/programs/words.py").read_text()
PERL = """
use strict;
my ($count) = @ARGV;
my %lines;
for my $i (1 .. $count) {
    my @fields = split /,/, join(",", $i, $i * $i % 9973, "x" x ($i % 60));
    push @{ $lines{ $fields[1] } }, \\@fields;
}
my $sum = 0;
for my $key (sort keys %lines) {
    $sum += scalar map { join ";", @$_ } @{ $lines{$key} };
}
die unless $sum == $count;
"""
LUA = """
local words, made = {}, 0
for i = 1, arg[1] do
    local word = "w" .. (i * i % 9973) .. ":" .. i
    words[i % 5000 + 1] = { name = word, get = function() return word end }
    made = made + (words[i % 5000 + 1].get() == word and 1 or 0)
end
assert(made == tonumber(arg[1]))
"""
SQL = """
create table item(id integer primary key, name text, amount integer);
create index item_name on item(name);
with recursive n(x) as (select 1 union all select x + 1 from n where x < {count})
insert into item select x, 'name ' || (x * x % 9973) || ' of ' || x, x % 977 from n;
create table total as select substr(name, 1, 8) as start, group_concat(name) as names,
    sum(amount) as amount from item group by start;
update item set name = upper(name) where id % 3 = 0;
"""


def c_source(count):
    """Functions for a compiler"""
    return "\n".join(
        f"int f{i}(int *a, int n)\n{{\n    int s = {i};\n    for (int j = 0; j < n; j++)\n"
        f"        switch (a[j] % 5) {{\n        case 0: s = s * {i + 3} + a[j]; break;\n"
        f"        case 1: s ^= a[j] >> {i % 7}; break;\n        default: s += a[j] + {i};\n"
        "        }\n    return s;\n}" for i in range(count))


def workload(name, small, large):
    """One of bench/workloads as a case"""
    program = f"out/release/{name}_system"
    return name, {}, lambda _, counted: [program, *(small if counted else large).split()]


def program(name, extension, text, words, small, large, **variables):
    """A real program that reads a file as a case; text is a function of the size, or a string."""
    def command(folder, counted):
        size = small if counted else large
        path = pathlib.Path(folder) / f"source.{extension}"
        path.write_text(text(size) if callable(text) else text)
        return [word.format(path=path, size=size) for word in words()]
    return name, variables, command


def compiler():
    """The compiler behind the driver, which starts it as a child"""
    found = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True,
                           check=True)
    return [found.stdout.strip(), "-quiet", "-O1", "{path}", "-o", "/dev/null"]


def cases():
    """(title, cases) of micro-workloads and of real programs; a case is (name, variables, a
    function of a folder and of whether it is counted that returns the words of the command)."""
    python = "/usr/bin/python3"
    micro = [workload("bench_random_mixed", "200000 2000 42", "20000000 2000 42"),
             workload("mixed_lifetimes", "1 50000 42", "1 3000000 42"),
             workload("thread_churn", "50 1 400 8 1024 42", "3000 1 400 8 1024 42"),
             workload("realloc_growth", "16 1048576 2 10000 42", "16 67108864 3 600000 42"),
             workload("bench_mid_large_mt", "1 2000 256 42", "1 100000 256 42"),
             workload("big_buffers", "20 2 5242880 6291456 42", "100 20 5242880 25214400 42")]
    real = [program("python3", "py", PYTHON, lambda: [python, "-S", "-B", "{path}", "{size}"],
                    10000, 300000, PYTHONHASHSEED="0"),
            program("python3, its own caches off", "py", PYTHON,
                    lambda: [python, "-S", "-B", "{path}", "{size}"],
                    10000, 300000, PYTHONHASHSEED="0", PYTHONMALLOC="malloc"),
            program("sqlite3", "sql", lambda size: SQL.format(count=size),
                    lambda: ["sqlite3", ":memory:", ".read {path}"], 4000, 200000),
            program("gcc -O1 -S", "c", c_source, compiler, 12, 400),
            program("perl", "pl", PERL, lambda: ["perl", "{path}", "{size}"], 8000, 200000,
                    PERL_HASH_SEED="0"),
            program("lua", "lua", LUA, lambda: ["lua5.4", "{path}", "{size}"], 20000, 500000)]
    return [("micro-workloads", micro), ("real programs", real)]


def arms():
    """{row of a table: variables}; the first is what the others are compared with."""
    accepted = next(accepted for name, _, accepted, _ in gen_docs.options() if name == "harden")
    members = accepted.rsplit(": ", 1)[1].split(", ")
    return {"balanced": {"HAKMEM_MODE": "balanced"},
            **{f"`{member}`": {"HAKMEM_MODE": "balanced", "HAKMEM_HARDEN": member}
               for member in members},
            "hardened": {"HAKMEM_MODE": "hardened"}}


def environment_of(variables, arm):
    """What a measured program gets beside the clean environment"""
    return {"LD_PRELOAD": str(ROOT / "out/release/libhakmem.so"), **variables, **arm}


def instructions(words, variables):
    """Millions of them; without the maintenance thread, which goes by the clock."""
    return counts.instructions(ROOT, words, {**variables, "HAKMEM_MAINTENANCE": "off"})[0] / 1e6


def calls(words, variables):
    """Memory system calls"""
    return sum(counts.calls(ROOT, words, variables)[0].values())


def peak_mib(words, variables):
    """The median of some runs"""
    runs = [launcher.run(ROOT, words, variables).cost.peak_rss_kib for _ in range(MEMORY_RUNS)]
    return sorted(runs)[len(runs) // 2] / 1024


def counted(case):
    """{arm: (instructions, peak, calls)} of one case"""
    name, variables, command = case
    with tempfile.TemporaryDirectory() as folder:
        words = command(folder, True)
        found = {}
        for arm, setting in arms().items():
            full = environment_of(variables, setting)
            found[arm] = (instructions(words, full), peak_mib(words, full), calls(words, full))
    print(f"{name}: hardened {found['hardened'][0] / found['balanced'][0]:.2f}", file=sys.stderr)
    return found


def timed(case, repeats):
    """({arm: Ratio of wall time to balanced}, seconds of balanced, floor) of one case"""
    name, variables, command = case
    names = list(arms())
    with tempfile.TemporaryDirectory() as folder:
        words = command(folder, False)
        seconds = {arm: [] for arm in [*names, "again"]}
        order = list(seconds)
        for turn in range(repeats + 1): # the first warms up
            for arm in order[turn % len(order):] + order[:turn % len(order)]:
                setting = arms()["balanced" if arm == "again" else arm]
                done = launcher.run(ROOT, words, environment_of(variables, setting))
                seconds[arm] += [done.cost.wall_s] * (turn > 0)
    base = seconds["balanced"]
    ratios = {arm: stats.paired_ratio(seconds[arm], base) for arm in names[1:]}
    print(f"{name}: hardened {ratios['hardened'].median:.2f}", file=sys.stderr)
    return ratios, sorted(base)[len(base) // 2], stats.floor(seconds["again"], base)


def ratio_rows(names, values, absolute):
    """The table of cases against arms: balanced as it is, the others compared with it."""
    body = []
    for name, found in zip(names, values):
        first = found["balanced"]
        body.append([name, absolute(first),
                     *(f"{value / first:.2f}" for arm, value in found.items()
                       if arm != "balanced")])
    return gen_docs.table(["", *arms()], body)


def counted_text(groups, results):
    """The tables of instructions, memory and calls, in this order"""
    text = ""
    titles = (("Instructions: millions in mode balanced, and times as many", "{:.1f} M", 0),
              ("Peak resident memory: MiB in mode balanced, and times as much", "{:.1f} MiB", 1),
              ("Memory system calls: how many in mode balanced, and times as many", "{}", 2))
    for title, form, part in titles:
        for group, members in groups:
            names = [name for name, _, _ in members]
            values = [{arm: found[part] for arm, found in results[name].items()}
                      for name in names]
            body = ratio_rows(names, values, form.format)
            text += f"{title} ({group}):\n\n{body}\n"
    return text


def timed_text(groups, results):
    """The tables of wall time"""
    text = ""
    for group, members in groups:
        body = []
        for name, _, _ in members:
            ratios, seconds, floor = results[name]
            body.append([name, f"{seconds:.2f} s", f"{floor * 100:.1f} %",
                         *(f"{ratio.median:.2f}" for ratio in ratios.values())])
        heads = list(arms())
        text += (f"Wall time: seconds in mode balanced, the floor of the noise, and times as long "
                 f"({group}):\n\n{gen_docs.table(['', heads[0], 'floor', *heads[1:]], body)}\n")
    return text


def provenance(command):
    """One line: when, where, what"""
    facts = environment.describe(ROOT)
    return (f"Written by `{command}` on {facts['date'][:10]} at commit {facts['commit']}: "
            f"{facts['processors']} processors ({facts['cpu']}), {facts['memory_gib']} GiB, "
            f"Linux {facts['kernel'].split('-')[0]}, {facts['libc']}, huge pages "
            f"{facts['huge_pages']}.\n\n")


def placed(document, what, text):
    """The document with what lies between the two marks replaced; the marks must be there."""
    opens, ends = f"<!-- {what}: generated -->\n", f"<!-- end of {what} -->\n"
    before, found, rest = document.partition(opens)
    _, also, after = rest.partition(ends)
    if not found or not also:
        sys.exit(f"{DOCUMENT.name} has no place for {what}")
    return before + opens + "\n" + text + ends + after


def main():
    """Measures and writes."""
    parser = argparse.ArgumentParser(prog="./hak harden-prices")
    parser.add_argument("--time", action="store_true", help="wall time instead of counts")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="rounds, at least 7")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases counted at once")
    parser.add_argument("--only", default="", help="cases whose name contains a word; print only")
    options = parser.parse_args()
    if options.repeats < 7:
        parser.error("--repeats: at least 7")
    if options.jobs < 1:
        parser.error("--jobs: at least 1")
    if "HAK_WORDS_ONLY" in os.environ:  # ./hak, before it builds
        return
    chosen = [word for word in options.only.split(",") if word]
    groups = [(group, [case for case in members
                       if not chosen or any(word in case[0] for word in chosen)])
              for group, members in cases()]
    groups = [(group, members) for group, members in groups if members]
    every = [case for _, members in groups for case in members]
    if not every:
        parser.error(f"--only: no case's name contains {options.only}")
    if options.time:
        results = {case[0]: timed(case, options.repeats) for case in every}
        what, text = "times", timed_text(groups, results)
    else:
        launcher.prepare(ROOT)
        with ThreadPoolExecutor(options.jobs) as pool:
            results = dict(zip((case[0] for case in every), pool.map(counted, every)))
        what, text = "counts", counted_text(groups, results)
    text = provenance("./hak harden-prices" + " --time" * options.time) + text
    if chosen:
        print(text)
    else:
        DOCUMENT.write_text(placed(DOCUMENT.read_text(), what, text))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except counts.CannotCount as error:
        sys.exit(f"harden-prices: {error}")

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""learn=sites: a call site that keeps what it allocates gets a rule, its blocks lie apart, and the
process becomes smaller between bursts; the rule is listed, kept in the file, pinned and forbidden.
If this fails, learning does nothing, does harm, or cannot be looked at."""
import atexit
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from processes import HAKMEM, LIBRARY, OUT, becomes, check, hakmem, says

KEEPER = str(OUT / "tests/preload_keeper")
WORK = pathlib.Path(tempfile.mkdtemp(prefix="sites."))


def start(bursts, wrapper, **settings):
    """The program; memory is dear, so that what a small program saves is worth its price."""
    environment = {**os.environ, "LD_PRELOAD": LIBRARY,
                   "HAKMEM_PRICE": "compact",
                   **{f"HAKMEM_{name.upper()}": str(value) for name, value in settings.items()}}
    started = subprocess.Popen([KEEPER, str(bursts), str(wrapper)], env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    atexit.register(started.kill)
    return started


def valley(process):
    """Its mean resident size after the last bursts, in KiB."""
    said, wrong = process.communicate(timeout=1000)
    check(f"it ends well: {said}{wrong}", process.returncode == 0 and wrong == "")
    return int(re.fullmatch(r"valley (\d+)\n", said)[1])


def end(process):
    """Lets it end well before its time."""
    process.terminate()
    valley(process)


def wait_for(pid, what, is_so):
    """Until hakmem serves it, and its statistics of memory are so."""
    end_s = time.monotonic() + 300
    while True:
        ran = subprocess.run([HAKMEM, "top", "--json", str(pid)], capture_output=True, text=True,
                             check=False)
        if ran.returncode == 0 and is_so(json.loads(ran.stdout)["memory"]):
            return
        check(f"{what}: {ran.stdout}{ran.stderr}", time.monotonic() < end_s)
        time.sleep(0.1)


def rules(*arguments, status=0):
    """What the command says."""
    return hakmem("rules", *arguments, status=status)


def states(source):
    """The states of the rules of the only site that keeps, by JSON."""
    return [rule for rule in json.loads(rules("--json", source)) if rule["state"] != "candidate"]


# Without learning, with learning, with all sites behind one function and behind two, one with a
# function of its own, and with learning that changes nothing. They sleep most of the time.
LEARNED = WORK / "learned"
HAS_CALLERS = os.uname().machine == "x86_64"
RUNS = {"static": start(40, 0, learn="none"),
        "cold": start(40, 0, learn="sites", profile=LEARNED),
        "research": start(25, 0, mode="research", stats="off", stats_shm="off", crash_report="off",
                          learn="sites", profile=WORK / "research")}
for name, wrapper in (("wrapped", 1), ("twice", 2), ("apart", 3)) if HAS_CALLERS else ():
    RUNS[name] = start(40, wrapper, learn="sites", profile=WORK / name)
VALLEYS = {name: valley(process) for name, process in RUNS.items()}
STATIC, COLD = VALLEYS["static"], VALLEYS["cold"]
listed = rules("--program", "preload_keeper", LEARNED)
check(f"the rule is in the file: {listed}",
      re.search(r"^active     preload_keeper\+0x[0-9a-f]+, 128 bytes: \d+ % of \d+ samples "
                r"outlived two generations$", listed, re.M))
check(f"one site keeps: {listed}", listed.count("active ") == 1)
check(f"cold: {COLD} KiB in the valley of {STATIC}", COLD < 0.8 * STATIC)

# With what the first run learned; and, until they are told to end, one that is looked at, one in
# which rules are measured, and one for rules of the user.
shutil.copy(LEARNED, WORK / "shown")
shutil.copy(LEARNED, WORK / "measured")
WARMED = start(40, 0, learn="sites", profile=LEARNED)
process = start(4000, 0, learn="sites", profile=WORK / "shown")
MEASURED = start(4000, 0, learn="sites", profile=WORK / "measured")
TOLD = start(4000, 0, learn="sites", profile=WORK / "told")
wait_for(process.pid, "it diverts", lambda memory: memory["diverted_sites"] > 0)
WARM_RULES = states(process.pid)
check(f"it starts with the rule: {WARM_RULES}", any(r["state"] == "active" for r in WARM_RULES))
COUNTED = json.loads(hakmem("top", "--json", process.pid))
check(f"statistics count what lies apart: {COUNTED['memory']}",
      COUNTED["memory"]["diverted_sites"] >= 1)
check(f"and when that began: {COUNTED['process']}", COUNTED["process"]["rules_begun"] >= 1)
shown = hakmem("top", "--once", process.pid)
check(f"top shows it: {shown}", re.search(r"^  call sites diverted: [1-9]\d* now, ", shown, re.M))
everybody = json.loads(rules("--json"))
check(f"without a process, all are listed: {everybody}",
      any(r["state"] == "active" for p in everybody if p["pid"] == process.pid
          for r in p["rules"]))
says("what it changes is shown, measured or not", rules(process.pid),
     r"(?m)^effect     128 bytes: (not yet measured: of 32 pages each, \d+ were|pages are in use)")
end(process)
WARM = valley(WARMED)
check(f"warm: {WARM} KiB in the valley of {STATIC}", WARM < 0.8 * STATIC)

# What the rule changes is measured, and shown.
process = MEASURED
wait_for(process.pid, "it runs", lambda memory: memory["long_live_bytes"] > 0)
end_s = time.monotonic() + 300
kept = None
while kept is None or kept < 10:
    check(f"slabs are kept free, and this is measured: {kept} %", time.monotonic() < end_s)
    effects = [r["effect"] for r in states(process.pid) if r["state"] == "active"]
    check(f"an active rule has an effect: {effects}", all(effects))
    kept = effects[0]["kept_free_percent"] if effects else None
    time.sleep(0.2)
check(f"pages were observed: {effects}",
      effects[0]["pages"] >= 32 and effects[0]["held_back_pages"] >= 32 and
      effects[0]["used_percent"] < effects[0]["held_back_used_percent"])
says("it is shown in words", rules(process.pid),
     r"(?m)^effect     128 bytes: pages are in use for \d+ % of the time, and for \d+ % while the "
     r"rules are held back: they keep \d+ % of the slabs free$")
end(process)

# All sites behind one function: its callers are told apart where the stack shows them.
if HAS_CALLERS:
    WRAPPED = VALLEYS["wrapped"]
    listed = rules("--program", "preload_keeper", WORK / "wrapped")
    check(f"the caller has the rule: {listed}",
          re.search(r"^active     preload_keeper\+0x\w+ < preload_keeper\+0x\w+, 128", listed,
                    re.M))
    check(f"behind a wrapper: {WRAPPED} KiB in the valley of {STATIC}", WRAPPED < 0.8 * STATIC)

    # Behind two, the callers above both are told apart, in the next run from its start.
    PLACE = r"preload_keeper\+0x\w+"
    THREE = rf"^active     ({PLACE}) < ({PLACE}) < ({PLACE}), 128"
    WRAPPED_TWICE = VALLEYS["twice"]
    listed = rules("--program", "preload_keeper", WORK / "twice")
    check(f"the caller above both has the rule: {listed}",
          len(re.findall("^active ", listed, re.M)) == 1 and re.search(THREE, listed, re.M))
    check(f"behind two wrappers: {WRAPPED_TWICE} KiB in the valley of {STATIC}",
          WRAPPED_TWICE < 0.8 * STATIC)
    chain = re.search(THREE, listed, re.M).groups()
    process = start(4000, 2, learn="sites", profile=WORK / "pinned")
    wait_for(process.pid, "it runs", lambda memory: memory["small_live_bytes"] > 0)
    rules(process.pid, "pin", chain[0], 120, *chain[1:])
    wait_for(process.pid, "blocks are diverted", lambda memory: memory["long_live_bytes"] > 0)
    pinned = [r for r in states(process.pid) if r["state"] == "pinned"]
    check(f"three places are pinned: {pinned}",
          [(r["site"], r["caller"], r["second_caller"]) for r in pinned] == [chain])
    end(process)

    # A caller all of whose blocks stay is not split.
    listed = rules("--program", "preload_keeper", WORK / "apart")
    check(f"the caller has the rule: {listed}",
          re.search(rf"^active     {PLACE} < {PLACE}, 128", listed, re.M))
    check(f"no caller of it has one: {listed}", not re.search(rf"({PLACE} < ){{2}}", listed))

# mode=research learns, and changes nothing.
listed = rules("--program", "preload_keeper", WORK / "research")
check(f"research in the shadow: {listed}", not re.search("^(active|canary)", listed, re.M))
check(f"research learns: {listed}", re.search("^(shadow|candidate)", listed, re.M))

# What the user says stays, in a process and in a file.
site = next(r for r in WARM_RULES if r["state"] == "active")
process = TOLD
said = rules(process.pid, "forbid", site["site"], 120)
check(f"forbid: {said}", "the site is forbidden" in said)
becomes("it is forbidden", lambda: [r["state"] for r in states(process.pid)
                                    if r["site"] == site["site"]] == ["forbidden"])
said = rules(process.pid, "pin", site["site"], 128)
check(f"pin: {said}", "the site is pinned" in said)
end(process)
told = rules("--program", "preload_keeper", WORK / "told")
check(f"the word is kept: {told}", re.search("^pinned ", told, re.M))

# Rules in force leave it its room, though their sites are not met.
shutil.copy(LEARNED, WORK / "full")
FULL = ("--program", "preload_keeper", WORK / "full")
room = 16 - len(json.loads(rules("--json", *FULL)))
(WORK / "lines").write_text("".join(
    f"site active 128 800 790 preload_keeper+{hex(0x900001 + i)} -\n" for i in range(room)))
rules(*FULL, "import", WORK / "lines")
process = start(4000, 0, learn="sites", profile=WORK / "full")
wait_for(process.pid, "it runs", lambda memory: memory["small_live_bytes"] > 0)
rules(process.pid, "forbid", "preload_keeper+0x777777", 128)
end(process)
told = rules(*FULL)
check(f"a ban is kept beside them: {told}", re.search(r"^forbidden .*0x777777", told, re.M))
check("the file was full", len(json.loads(rules("--json", *FULL))) == 16)

lines = rules("--program", "preload_keeper", WORK / "told", "export")
(WORK / "lines").write_text(lines)
check(f"lines: {lines}", lines.startswith("site "))
rules("--program", "preload_keeper", LEARNED, "import", WORK / "lines")
check("the rules came over",
      re.search("^pinned ", rules("--program", "preload_keeper", LEARNED), re.M))

# A process that does not learn says so.
process = start(4000, 0, learn="none")
wait_for(process.pid, "it runs", lambda memory: memory["small_live_bytes"] > 0)
check("a process that does not learn says so",
      "start the program with learn=sites" in rules(process.pid, status=1))
end(process)
print("ok")

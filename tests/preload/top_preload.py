#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hakmem top`: shows a running process truly, in every way that it has, and says in one line what
hinders it. If this fails, people look at numbers that are not, or leave a broken terminal."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time
import urllib.error
import urllib.request

import processes
from processes import HAKMEM, OUT, PYTHON, STARTED, becomes, equal, fail, hakmem, says, shm_file

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
except ImportError:
    parse = None


def start(program, **settings):
    """A Python program on hakmem; its process, once it says so."""
    return processes.start([PYTHON, "-c", program], **settings)


def stop(process):
    """Lets it end, well."""
    process.stdin.close()
    equal("the program ends well", process.wait(300), 0)


def top(*arguments, status=0, **settings):
    """Runs top; what it says."""
    return hakmem("top", *arguments, status=status, stdin=subprocess.DEVNULL,
                  env={**os.environ, "LC_ALL": "C", **settings})


def refuses(what, *arguments, pattern):
    """One line, status 1."""
    said = top(*arguments, status=1)
    equal(f"{what}: lines of {said!r}", said.count("\n"), 1)
    says(what, said, pattern)


WAITS = "print('ready', flush=True); sys.stdin.read()"
HOLDS = f"import sys; blocks = [bytes(3000) for i in range(20000)]; {WAITS}"


def check_numbers():
    """What is shown is what the program holds, also while it sleeps."""
    process = start(HOLDS, HAKMEM_STATS_SHM="1", HAKMEM_GUARD_RATE="0")
    equal("only the owner may read", shm_file(process.pid).stat().st_mode & 0o777, 0o600)

    def live_blocks():
        whole = json.loads(top(process.pid, "--json"))
        equal("the process", whole["pid"], process.pid)
        return sum(row["live_blocks"] for row in whole["classes"] if row["block_bytes"] == 3072)

    # What is shown may be older than the last block.
    becomes("20000 blocks are live", lambda: 20000 <= live_blocks() < 20100)
    once = top(process.pid, "--once", COLUMNS="80")
    for line in once.splitlines():
        if len(line) > 80:
            fail(f"wider than 80: {line}")
    for word in ("live, up to 128K", "cached", "kept", "rseq ",
                 "resident", "3.0K", "Last decisions"):
        equal(f"it shows {word}", word in once, True)

    def resident_is_right():
        said = re.search(r"resident (\S+)M", top(process.pid, "--once", COLUMNS="80"))[1]
        smaps = pathlib.Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        rss = int(re.search(r"Rss: +(\d+)", smaps)[1]) / 1024
        return abs(float(said) - rss) <= 1 + rss / 50

    # Free memory goes back between two looks.
    becomes("what is resident is shown", resident_is_right)
    wide = top(process.pid, "--once", COLUMNS="200")
    equal("beside each other where there is room",
          any("Where the heap" in line and "Size" in line for line in wide.splitlines()), True)
    equal("a verdict", bool(re.search(r"^\d+ % of (what is held|the resident bytes) ", once, re.M)),
          True)
    check_serve(process)
    check_serve_all(process)
    check_terminal(process)
    check_small(process)
    check_colours(process)
    stop(process)
    equal("nothing is left", shm_file(process.pid).exists(), False)
    refuses("an ended one", process.pid, "--once", pattern="no process")


def serve(*what):
    """`hakmem top --serve`, and its address."""
    server = subprocess.Popen([HAKMEM, "top", *map(str, what), "--serve", "0"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    STARTED.append(server)
    return server, server.stdout.readline().strip()


def check_serve_all(process):
    """All processes of this user on one port, told apart by labels; one that ends is left out."""
    other = start(f"import sys; kept = bytearray(200 << 20); {WAITS}", HAKMEM_STATS_SHM="1")
    server, address = serve("--all")

    def look():
        with urllib.request.urlopen(address, timeout=300) as answer:
            text = answer.read().decode()
        equal("it is whole", text.endswith("# EOF\n") and text.count("# EOF") == 1, True)
        types = re.findall(r"^# TYPE (\S+)", text, re.M)
        equal("each family is there once", len(types), len(set(types)))
        samples = re.findall(r"^([^#\n]*) \S+$", text, re.M)
        equal("each sample is there once", len(samples), len(set(samples)))
        if parse is not None:
            list(parse(text))
        return {int(pid): int(value) for pid, value in re.findall(
            r'^hakmem_live_bytes{pid="(\d+)",program="[^"]+"} (\d+)$', text, re.M)}

    def are_told_apart():
        live = look()
        return live[other.pid] >= 200 << 20 > live[process.pid]

    equal("both are there", {process.pid, other.pid} <= set(look()), True)
    becomes("each with its own numbers", are_told_apart)
    stop(other)
    equal("one that ended is left out", set(look()) & {process.pid, other.pid}, {process.pid})
    server.terminate()
    server.wait(300)


def connect(port, request=b""):
    """A client that has sent this."""
    client = socket.create_connection(("127.0.0.1", port), timeout=300)
    client.sendall(request)
    return client


def ask(port, request):
    """The whole answer to it."""
    with connect(port, request) as client, client.makefile("rb") as answer:
        return answer.read()


def check_slow_clients(port):
    """One that never ends its request, and those that send nothing, hold nobody up."""
    slow = connect(port, b"GET /metrics HTTP/1.1\r\nX-Slow: ")

    def serves_meanwhile(what):
        client = connect(port, b"GET /metrics HTTP/1.1\r\n\r\n")
        for _ in range(1000):  # bytes, which are less than the longest request
            if select.select([client], [], [], 0.1)[0]:
                break
            try:
                slow.sendall(b"x")
            except OSError:
                pass  # it was given up
        else:
            fail(f"{what}: no answer beside a slow client")
        with client.makefile("rb") as answer:
            equal(what, answer.read().endswith(b"# EOF\n"), True)
        client.close()

    silent = [connect(port) for _ in range(6)]
    serves_meanwhile("beside a few")
    silent += [connect(port) for _ in range(40)]
    serves_meanwhile("beside more than there are places for")
    for client in [slow, *silent]:
        client.close()


def check_serve(process):
    """OpenMetrics on this machine only."""
    server, address = serve(process.pid)
    port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/metrics", address)[1])
    check_slow_clients(port)
    with urllib.request.urlopen(address + "?name[]=any", timeout=300) as answer:
        equal("the type", answer.headers["Content-Type"].split(";")[0],
              "application/openmetrics-text")
        text = answer.read().decode()
    equal("it is whole", text.endswith("# EOF\n"), True)
    if parse is not None:
        equal("it is read", "hakmem_live_bytes" in [family.name for family in parse(text)], True)
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/other", timeout=300)
        fail("another path is served")
    except urllib.error.HTTPError as error:
        equal("/other", error.code, 404)
    for request in (b"POST / HTTP/1.1\r\n\r\n", b"\0\xff\r\n\r\n", b"G" * 9000):
        with socket.create_connection(("127.0.0.1", port), timeout=300) as client:
            client.sendall(request)
            equal("a strange request is refused", client.recv(12)[:10], b"HTTP/1.1 4")
    head, rest = ask(port, b"HEAD /metrics HTTP/1.1\r\n\r\n").split(b"\r\n\r\n")
    equal("the head alone", (head[:15], rest), (b"HTTP/1.1 200 OK", b""))
    equal("it has the length", int(re.search(rb"Content-Length: (\d+)", head)[1]) > 1000, True)
    refuses("a port in use", process.pid, "--serve", port, pattern=f"port {port} is not available")
    server.terminate()
    server.wait(300)


def set_size(terminal, columns, rows):
    """Gives a terminal this size."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Screen:
    """A command in a terminal of its own."""

    def __init__(self, *arguments, kind="xterm", size=None, **settings):
        self.child, self.terminal = pty.fork()
        self.seen = b""
        if self.child == 0:
            os.environ.update({"NO_COLOR": "", **settings}, LC_ALL="C", TERM=kind)
            if size is not None:
                set_size(0, *size)
            os.execv(HAKMEM, [HAKMEM, *map(str, arguments)])

    def shows(self, words, seconds=120):
        """Waits for the words in what comes from now on."""
        self.shows_match(re.escape(words), seconds)

    def shows_match(self, pattern, seconds=120):
        """The same with a pattern."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            left = max(deadline - time.monotonic(), 0)
            if not select.select([self.terminal], [], [], left)[0]:
                fail(f"{pattern} is not in {self.seen[-3000:]}")
            self.seen += os.read(self.terminal, 65536)
        self.seen = b""

    def type(self, keys):
        """Sends them."""
        os.write(self.terminal, keys)

    def end(self):
        """Quits; how it ended."""
        self.type(b"q")
        return self.ended()

    def ended(self):
        """Waits until it has; how."""
        try:
            while said := os.read(self.terminal, 65536):
                self.seen += said
        except OSError:
            pass
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])


def check_terminal(process):
    """Keys do what they say; the terminal is as before, after a signal, too."""
    for end in (b"q", signal.SIGTERM):
        screen = Screen("top", process.pid)
        screen.shows(b"every 1s")
        for keys, words in ((b"p", b"PAUSED"), (b"p", b"every 1s"),
                            (b"/zz", b"no block of up to 128K of such a size"),
                            (b"\x1b", b"every 1s"), (b"-", b"every 0.5s"), (b"+", b"every 1s"),
                            (b"h", b"q quit   c call sites, sizes   s sort order"),
                            (b"h", b"every 1s"), (b"s", b"by free")):
            screen.type(keys)
            screen.shows(words)
        screen.shows_match(rb"resident \x1b\[34m[_.,~+*#-]+\x1b\[0m \S+ +live ")
        if end == b"q":
            equal("quit ends well", screen.end(), 0)
        else:
            os.kill(screen.child, end)
            equal("the signal ends it", screen.ended(), -signal.SIGTERM)
        equal("the terminal is given back", screen.seen.endswith(b"\x1b[?25h\x1b[?1049l"), True)


def whole_picture(screen):
    """What draws the next one."""
    screen.seen = b""
    while not (whole := re.search(rb"\x1b\[H((?:(?!\x1b\[H).)*)\x1b\[J", screen.seen, re.S)):
        screen.seen += os.read(screen.terminal, 65536)
    return whole[1]


def picture(screen):
    """The lines of the next whole picture, without colours."""
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]|\r", "", whole_picture(screen).decode())
    return plain.split("\n")


def check_colours(process):
    """Who wants none gets none (no-color.org)."""
    for wish, has_colours in (("", True), ("1", False)):
        screen = Screen("top", process.pid, NO_COLOR=wish)
        equal(f"colours with NO_COLOR={wish}", b"m" in
              re.findall(rb"\x1b\[[0-9;]*([A-Za-z])", whole_picture(screen)), has_colours)
        equal("it ends well", screen.end(), 0)


def shows_picture(screen, what, suits):
    """Waits for a picture that suits; some before it may be of the size before."""
    for _ in range(10):
        lines = picture(screen)
        if suits(lines):
            return
    equal(f"{what}: {lines}", False, True)


def check_small(process):
    """No line is cut in a small terminal, and no picture is larger than it."""
    screen = Screen("top", process.pid, size=(60, 24))
    shown = " ".join(line.strip() for line in picture(screen)[:3])
    equal(f"the second line goes on: {shown}",
          bool(re.search(r"\+ all else \d+\.?\d*[KMG]", shown)), True)
    screen.type(b"h")
    screen.shows(b"q quit   c call")
    lines = picture(screen)
    shown = " ".join(line.strip() for line in lines)
    for words in ("+ - slower, faster", "/ filter rows p pause", "is the kernel's count"):
        equal(f"the help has {words}: {lines}", words in re.sub(" +", " ", shown), True)
    for columns, rows in ((40, 10), (60, 12), (140, 10)):
        set_size(screen.terminal, columns, rows)
        for _ in range(2):  # with the help, and without
            screen.shows(b", process ")
            shows_picture(screen, f"it fits in {columns}x{rows}",
                          lambda lines, width=columns, height=rows: (
                              len(lines) <= height and max(map(len, lines)) < width))
            screen.type(b"h")
    for columns, rows in ((39, 10), (40, 9), (10, 3)):
        set_size(screen.terminal, columns, rows)
        shows_picture(screen, f"no room in {columns}x{rows}",
                      lambda lines, end=columns - 1: lines == ["the terminal is too small"[:end]])
    set_size(screen.terminal, 90, 30)
    screen.shows(b"resident ")
    equal("it ends well", screen.end(), 0)
    screen = Screen("top", process.pid, kind="dumb")
    equal("a terminal that cannot move its cursor", screen.ended(), 1)
    equal("it says what can be done", screen.seen,
          b"hakmem: top: not a terminal: use --once, --json or --serve\r\n")


WORKS = ("""
import time
print('ready', flush=True)
end = time.monotonic() + 120
while time.monotonic() < end:
    kept = [bytes(5000) for i in range(500)]
    time.sleep(0.005)
""")


def check_attach():
    """A process that was started without an option is asked to show itself, and is in the list."""
    process = start(WORKS, PYTHONMALLOC="malloc")
    server, address = serve(process.pid)
    with urllib.request.urlopen(address, timeout=300) as answer:
        equal("it is served", b"\nhakmem_live_bytes " in answer.read(), True)
    server.terminate()
    server.wait(300)
    once = top(process.pid, "--once")
    equal("it is shown", "Where the heap" in once, True)
    equal("since it was asked", shm_file(process.pid).exists(), True)
    screen = Screen("top")
    screen.shows(b"ALLOCATOR")
    screen.type(b"/" + str(process.pid).encode())
    screen.shows(b"only: " + str(process.pid).encode())
    screen.type(b"\r")
    screen.shows(b"> ")
    screen.type(b"\r")
    screen.shows(b"Where the heap")
    screen.type(b"j")
    screen.shows(b"every 1s")
    equal("it ends well", screen.end(), 0)
    process.kill()
    process.wait()
    shm_file(process.pid).unlink()


def holder(**settings):
    """A program that holds 8 MB by yard::keep, and 1 MB more by yard::leak for each line."""
    return processes.start([OUT / "tests" / "cli_holder"], HAKMEM_STATS_SHM="1", **settings)


def leak(process):
    """1 MB more."""
    process.stdin.write("\n")
    process.stdin.flush()
    equal("it has leaked", process.stdout.readline(), "done\n")


def check_sites():
    """What holds the memory, and what grows, with the profile on; else how to switch it on."""
    process = holder()
    switch = f"the heap profile is off; to switch it on: hakmem ctl {process.pid} profile on"
    equal("how to switch it on", switch in top(process.pid, "--once"), True)
    screen = Screen("top", process.pid)
    screen.shows(b"c call sites")
    screen.type(b"c")
    screen.shows(switch.encode())
    equal("it ends well", screen.end(), 0)
    stop(process)
    # 49 of 50 blocks of 1,000 bytes are samples: 0.1 MiB is eight deviations of a sum of 8,000.
    process = holder(HAKMEM_HEAP_PROFILE="on", HAKMEM_HEAP_PROFILE_RATE="256",
                     HAKMEM_HEAP_PROFILE_SAMPLES="0")
    once = top(process.pid, "--once", COLUMNS="80")
    sites = once[once.index("call site < its callers  by live"):]
    row = re.search(r"^ +([0-9.]+)M +- +([0-9.]+)[kK]? +yard::keep  holder.cpp:\d+ < main *$",
                    sites, re.M)
    equal(f"what it holds: {sites}", 7.2 < float(row[1]) < 8.4, True)
    equal("what came and went is not there", "yard::pass" in sites, False)
    screen = Screen("top", process.pid, "--interval", "0.25")
    screen.shows(b"c call sites")
    screen.type(b"c")
    screen.shows(b"yard::keep")
    screen.type(b"s")
    screen.shows(b"by growth")
    leak(process)
    screen.shows_match(rb"by growth.*\r\n +[0-9.]+[KM]~? +\+[0-9.]+[KM] +\d+  yard::leak  holder")
    screen.type(b"s")
    screen.shows_match(rb"allocated .*\r\n +0 .*M  yard::pass ")
    screen.type(b"/leak")
    screen.shows(b"only: leak_")
    screen.type(b"\r")
    screen.shows_match(rb"by allocated[^\n]*\n[^\n]*yard::leak[^\n]*\n[^\n]*only: leak")
    screen.type(b"/zz\r")
    screen.shows(b"no call site of such a name")
    screen.type(b"c")
    screen.shows(b"by held")
    equal("it ends well", screen.end(), 0)
    top_wide = top(process.pid, "--once", COLUMNS="200")
    equal("also where there is room", "yard::keep" in top_wide, True)
    stop(process)


def check_bad():
    """What cannot be shown."""
    refuses("nobody", 999999999, "--once", pattern="no process 999999999")
    silent = start(f"import sys; {WAITS}")
    refuses("one that publishes nothing", silent.pid, "--once", pattern="HAKMEM_STATS_SHM=1")
    refuses("no terminal", start(f"import sys; {WAITS}", HAKMEM_STATS_SHM="1").pid,
            pattern="not a terminal")
    path = shm_file(silent.pid)
    shown = start(f"import sys; {WAITS}", HAKMEM_STATS_SHM="1")
    good = shm_file(shown.pid).read_bytes()
    stat = pathlib.Path(f"/proc/{silent.pid}/stat").read_text().rpartition(")")[2].split()
    own = silent.pid.to_bytes(8, "little")
    ticks = int(stat[19]).to_bytes(8, "little")
    for what, content, pattern in (
            ("a foreign file", b"anything " * 2000, "does not hold statistics"),
            ("an empty file", b"", "does not hold statistics"),
            ("a cut header", good[:20], "does not hold statistics"),
            ("another version", good[:8] + bytes(8) + good[16:], "another version"),
            ("an earlier process's", good, "earlier process"),
            ("an earlier one of the same number",
             good[:16] + own + good[24:32] + bytes(8) + good[40:], "earlier process"),
            ("a truncated file",
             good[:16] + own + good[24:32] + ticks + good[40:5000], "cut short")):
        path.write_bytes(content)
        refuses(what, silent.pid, "--once", pattern=pattern)
        path.unlink()
    with tempfile.NamedTemporaryFile() as elsewhere:
        path.symlink_to(elsewhere.name)
        refuses("a link", silent.pid, "--once", pattern="cannot be read")
        path.unlink()
    os.mkfifo(path)
    refuses("a pipe", silent.pid, "--once", pattern="not a file")
    path.unlink()
    os.kill(shown.pid, signal.SIGKILL)
    shown.wait()
    check_ended(shown)
    for wrong in ([], ["x"], ["1", "2"], ["1", "--serve"], ["1", "--serve", "70000"],
                  ["1", "--interval", "0"], ["1", "--never"], ["-5"]):
        top(*wrong, status=2)
    stop(silent)


def check_ended(process):
    """What a killed one left is shown, as such, and goes when anybody looks at another one."""
    for _ in range(2):
        once = subprocess.run([HAKMEM, "top", str(process.pid), "--once"], capture_output=True,
                              text=True, timeout=300, check=True)
        equal("it says so", "has ended" in once.stderr and once.stdout.startswith("ended, "), True)
        equal("of memory that is gone nothing is said", "resident" in once.stdout, False)
        equal("the last numbers", json.loads(top(process.pid, "--json"))["pid"], process.pid)
    refuses("it cannot be watched", process.pid, "--serve", "0", pattern="--once shows")
    equal("it stays", shm_file(process.pid).exists(), True)
    refuses("another one", 999999999, "--once", pattern="no process 999999999$")
    equal("what it left is removed", shm_file(process.pid).exists(), False)
    refuses("an ended one", process.pid, "--once", pattern="no process")


def check_fork():
    """A child has a file of its own, and leaves its parent's alone."""
    program = """
import os, sys, time
child = os.fork()
if child == 0:
    blocks = []
    end = time.monotonic() + 120
    while not os.path.exists(f"/dev/shm/hakmem.{os.getpid()}") and time.monotonic() < end:
        blocks = [*blocks[-20:], [bytes(i) for i in range(2000)]]
    sys.exit(0 if os.path.exists(f"/dev/shm/hakmem.{os.getpid()}") else 9)
status = os.waitpid(child, 0)[1]
assert status == 0, status
assert not os.path.exists(f"/dev/shm/hakmem.{child}")
assert os.path.exists(f"/dev/shm/hakmem.{os.getpid()}")
"""
    stop(start(program + WAITS, HAKMEM_STATS_SHM="1"))


try:
    check_numbers()
    check_attach()
    check_sites()
    check_bad()
    check_fork()
    print("well")
finally:
    processes.end_all()

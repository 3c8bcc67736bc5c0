#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hakmem ctl` and `hakmem ps`: a running process is asked, does what it is asked once, and nothing
for anybody else. If this fails, a command hangs, a program is hurt by a file in /dev/shm, or one
user commands another one's processes."""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import processes
from processes import HAKMEM, LIBRARY, PYTHON, STARTED, becomes, children, equal, fail, hakmem, says

WORK = tempfile.mkdtemp(prefix="ctl.")
os.chmod(WORK, 0o755)

# Takes slow paths; the longest time without one is returned.
WORKS = """
import os, sys, time
def work(seconds):
    last = time.monotonic()
    end, longest = last + seconds, 0
    while last < end:
        kept = [bytes(5000) for i in range(500)] + [bytes(300000)]
        time.sleep(0.002)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    return longest
"""
BUSY = WORKS + "print('ready', flush=True)\nwork(1000)"
ASLEEP = "import sys; print('ready', flush=True); sys.stdin.read()"


def start(program, *before, prepare=None, python=PYTHON, **settings):
    """A Python program on hakmem, once it says that it is ready."""
    return processes.start([*before, python, "-c", program], {"preexec_fn": prepare},
                           **{"PYTHONMALLOC": "malloc", **settings})


def stop(process):
    """Ends it."""
    process.kill()
    process.wait()


def ctl(*arguments, status=0, **how):
    """What the command says: one line."""
    said = hakmem("ctl", *arguments, status=status, cwd=WORK, **how)
    equal(f"lines of {said!r}", said.count("\n"), 1)
    return said.rstrip("\n")


def ctl_whole(*arguments):
    """All that it writes."""
    return hakmem("ctl", *arguments, cwd=WORK)


def request_file(process):
    """Where a request for it is left."""
    return pathlib.Path(f"/dev/shm/hakmem.{process.pid}.request")


def rows(*arguments):
    """What ps lists."""
    return {row["pid"]: row for row in json.loads(hakmem("ps", "--json", *arguments))}


SLEEPS = WORKS + """
print('ready', flush=True)
for line in sys.stdin:
    work(2)
    print('worked', flush=True)
"""


def work(process):
    """Wakes one that SLEEPS for two seconds."""
    process.stdin.write("\n")
    process.stdin.flush()
    equal("it works", process.stdout.readline(), "worked\n")


def work_until_answered(process):
    """Wakes it until it has answered and done what was left for it."""
    for _ in range(30):
        work(process)
        if request_file(process).read_bytes()[360:376] == b"\2" + bytes(7) + b"\1" + bytes(7):
            return
    fail("what was left for it is not done")


def check_later():
    """A process that sleeps does what was left for it as soon as it works, once."""
    process = start(SLEEPS)
    work(process)
    says("it sleeps", ctl("--wait", 1, process.pid, "set", "decay=77ms", status=1),
         "or with --later")
    equal("nothing is left", request_file(process).exists(), False)
    equal("it is left", ctl("--later", "--wait", 1, process.pid, "set", "decay=77ms"),
          f"process {process.pid}: request left for when it next runs, within 12 hours")
    equal("it is there", request_file(process).stat().st_mode & 0o777, 0o600)
    says("one at a time", ctl("--later", "--wait", 1, process.pid, "trim", status=1),
         "has not yet carried out a request: set decay=77ms; rm /dev/shm/hakmem")
    work_until_answered(process)
    equal("another one takes its place", ctl("--later", "--wait", 1, process.pid, "profile", "on"),
          f"process {process.pid}: request left for when it next runs, within 12 hours")
    work_until_answered(process)
    process.stdin.write(60 * "\n")
    process.stdin.flush()
    printed = json.loads(ctl_whole(process.pid, "dump", "-"))
    equal("what it did", printed["policy"]["decay_ms"], 77)
    equal("what was done is removed", request_file(process).exists(), False)
    says("of one that works it is done at once", ctl("--later", process.pid, "profile", "off"),
         "sampling has stopped")
    equal("nothing is left", request_file(process).exists(), False)
    ctl("--later", process.pid, "dump", status=2)
    stop(process)


def check_requests():
    """Each request, of a program that works."""
    process = start(BUSY)
    says("trim", ctl(process.pid, "trim"), rf"^process {process.pid}: \S+ \S*B returned to the k")
    equal("set", ctl(process.pid, "set", "decay=2s"), f"process {process.pid}: decay=2s")
    equal("limit", ctl(process.pid, "set", "HAKMEM_LIMIT=1G"), f"process {process.pid}: limit=1G")
    equal("price", ctl(process.pid, "set", "price=compact"), f"process {process.pid}: "
          "price=compact")
    says("a wrong value", ctl(process.pid, "set", "decay=soon", status=1), "decay takes 0ms to")
    says("what is read at the start", ctl(process.pid, "set", "harden=all", status=1),
         "harden is read when the program starts")
    says("no sample yet", ctl(process.pid, "profile", "off"), "nothing was being sampled")
    says("sampled", ctl(process.pid, "profile", "on"), "sampling, one allocation in about 512")
    words = [HAKMEM, "profile", str(process.pid), "--folded", "--allocated"]
    becomes("something is sampled", lambda: subprocess.run(words, capture_output=True).stdout)
    says("the profile", hakmem(*words[1:]), " [1-9][0-9]*$")
    says("the end of it", ctl(process.pid, "profile", "off"), "sampling has stopped")
    for number in ("", ".2"):
        path = pathlib.Path(WORK) / f"hakmem.{process.pid}{number}.json"
        says("dump", ctl(process.pid, "dump"), f"statistics in {path.name}$")
        whole = json.loads(path.read_text())
        equal("the process", whole["pid"], process.pid)
        equal("what was set is in force", whole["policy"]["decay_ms"], 2000)
        equal("nobody else may read it", path.stat().st_mode & 0o777, 0o600)
    says("a name", ctl(process.pid, "dump", "named.json"), "statistics in named.json$")
    ran = subprocess.run([HAKMEM, "stats", "named.json"], cwd=WORK, capture_output=True, text=True,
                         check=True)
    says("it is read", ran.stdout, f"process {process.pid}")
    printed = json.loads(ctl(process.pid, "dump", "-"))
    equal("on standard output", printed["pid"], process.pid)
    equal("nothing is left", request_file(process).exists(), False)
    row = rows()[process.pid]
    equal("ps: nothing is published", (row["live_bytes"], row["is_served"]), (None, True))
    row = rows("--ask")[process.pid]
    if not 1 << 20 < row["live_bytes"] < row["resident_bytes"]:
        fail("ps --ask:", row)
    board = pathlib.Path(f"/dev/shm/hakmem.{process.pid}")
    equal("it shows its numbers", board.exists(), True)
    status = pathlib.Path(f"/proc/{process.pid}/status")
    becomes("it shows its numbers, and has a thread, only while somebody asks",
            lambda: not board.exists() and "Threads:\t1\n" in status.read_text())
    stop(process)
    says("an ended one", ctl(process.pid, "trim", status=1), "no process")


def check_silent():
    """One that sleeps does not answer, and says so in time; with its numbers shown, it does."""
    process, another = start(ASLEEP), start(ASLEEP)
    longer = subprocess.Popen([HAKMEM, "ctl", "--wait", "90", str(another.pid), "trim"])
    begin = time.monotonic()
    says("asleep", ctl("--wait", "1", process.pid, "trim", status=1),
         r"did not answer within 1 s: .*HAKMEM_STATS_SHM=1")
    if time.monotonic() - begin < 0.9:
        fail("it did not wait")
    equal("one that may wait longer does", longer.poll(), None)
    longer.kill()
    longer.wait()
    stop(another)
    equal("nothing is left", request_file(process).exists(), False)
    stop(process)
    shown = start(ASLEEP, HAKMEM_STATS_SHM="1")
    says("one that shows its numbers", ctl(shown.pid, "trim"), "returned")
    stop(shown)
    never = start(BUSY, HAKMEM_STATS_SHM="never")
    says("one that may not look", ctl("--wait", "2", never.pid, "trim", status=1), "did not answ")
    stop(never)
    process = start(WORKS + """
print('ready', flush=True)
while not os.path.exists(f'/dev/shm/hakmem.{os.getpid()}.request'):
    time.sleep(0.01)
os._exit(0)
""")
    says("one that ends", ctl(process.pid, "trim", status=1), "has ended")


def check_many():
    """Ten commands at once; one that is killed leaves nothing that matters."""
    process = start(BUSY)
    asked = [subprocess.Popen([HAKMEM, "ctl", "--wait", "60", str(process.pid), "set",
                               f"retain={i}M"], stdout=subprocess.PIPE, text=True)
             for i in range(1, 6)]
    said = {one.communicate(timeout=300)[0] for one in asked}
    equal("each has its answer", said,
          {f"process {process.pid}: retain={i}M\n" for i in range(1, 6)})
    os.kill(process.pid, signal.SIGSTOP)
    killed = subprocess.Popen([HAKMEM, "ctl", "--wait", "5", str(process.pid), "set", "decay=9s"])
    becomes("the request is there", request_file(process).exists)
    killed.kill()
    killed.wait()
    time.sleep(6.2)
    os.kill(process.pid, signal.SIGCONT)
    time.sleep(1.5)
    equal("a request that is too old is not done", json.loads(ctl(process.pid, "dump", "-"))
          ["policy"]["decay_ms"], 125)
    equal("and is removed", request_file(process).exists(), False)
    asleep = start(ASLEEP)
    killed = subprocess.Popen([HAKMEM, "ctl", "--wait", "60", str(asleep.pid), "trim"])
    becomes("the request is there", request_file(asleep).exists)
    killed.kill()
    killed.wait()
    says("the next one need not wait for it", ctl("--wait", 1, asleep.pid, "trim", status=1),
         "did not answer within 1 s")
    interrupted = subprocess.Popen([HAKMEM, "ctl", str(asleep.pid), "trim"],
                                   stderr=subprocess.PIPE, text=True)
    becomes("the request is there", request_file(asleep).exists)
    interrupted.send_signal(signal.SIGINT)
    says("interrupted", interrupted.communicate(timeout=300)[1], "interrupted before")
    equal("its status", interrupted.returncode, 1)
    stop(process)


def check_gone():
    """A reader of the dump that goes away, and a process that ends with a request left for it."""
    process = start(BUSY)
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([HAKMEM, "ctl", str(process.pid), "dump", "-"], stdout=writer,
                           stderr=subprocess.PIPE, text=True, check=False)
    equal("it ends by the signal, silently", (ended.returncode, ended.stderr),
          (-signal.SIGPIPE, ""))
    equal("its request is removed", request_file(process).exists(), False)
    ended = subprocess.run(["sh", "-c", 'trap "" PIPE; exec "$@"', "sh", HAKMEM, "ctl",
                            str(process.pid), "dump", "-"], stdout=writer,
                           stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    equal("where the signal is ignored, it says so", (ended.returncode, ended.stderr),
          (1, "hakmem: ctl: - cannot be written: Broken pipe\n"))
    says("the next request is answered", ctl("--wait", 5, process.pid, "trim"), "returned")
    asleep = start(ASLEEP)
    ctl("--later", "--wait", 1, asleep.pid, "trim")
    equal("it is there", request_file(asleep).exists(), True)
    ctl(process.pid, "trim")
    equal("it stays while the process lives", request_file(asleep).exists(), True)
    stop(asleep)
    ctl(process.pid, "trim")
    equal("it goes with its process", request_file(asleep).exists(), False)
    stop(process)


def check_hostile():
    """What else may lie under that name: the program goes on, and does nothing for it."""
    process = start(BUSY)
    path = request_file(process)
    asked = subprocess.Popen([HAKMEM, "ctl", "--wait", "60", str(start(ASLEEP).pid), "trim"])
    other = pathlib.Path(f"/dev/shm/hakmem.{STARTED[-1].pid}.request")
    becomes("the request is there", other.exists)
    good = other.read_bytes()
    asked.kill()
    asked.wait()

    def addressed(start_ticks):
        return (good[:8] + process.pid.to_bytes(8, "little") + good[16:24]
                + start_ticks.to_bytes(8, "little") + good[32:])

    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text()
    start_ticks = int(stat.rpartition(")")[2].split()[19])
    ours = addressed(start_ticks)
    target = pathlib.Path(WORK) / "target"
    target.write_bytes(ours)
    target.chmod(0o600)

    def link():
        path.symlink_to(target)

    def write(content, mode=0o600):
        def make():
            draft = path.with_suffix(".draft")
            draft.write_bytes(content)
            draft.chmod(mode)
            draft.rename(path)
        return make

    for what, make in (
            ("a link", link), ("a pipe", lambda: os.mkfifo(path, 0o600)),
            ("a folder", lambda: path.mkdir(0o700)), ("an empty file", write(b"")),
            ("a short one", write(ours[:100])), ("noise", write(os.urandom(5000))),
            ("another process's", write(good)),
            ("one of another start", write(addressed(start_ticks + 1))),
            ("one that others may write", write(ours, 0o666))):
        make()
        before = path.lstat()
        time.sleep(1.3)
        equal(f"{what}: the program goes on", process.poll(), None)
        after = path.lstat()
        equal(f"{what} is left as it was", (before.st_ino, before.st_mtime_ns),
              (after.st_ino, after.st_mtime_ns))
        equal("what a link leads to as well", target.read_bytes(), ours)
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    write(ours + bytes(1 << 22))()  # what stands behind a request is not read
    while path.read_bytes()[:len(ours)] == ours:
        time.sleep(0.01)
    path.unlink()
    link()
    says("in the way", ctl("--wait", "1", process.pid, "trim", status=1), "still unanswered")
    path.unlink()
    says("and then", ctl(process.pid, "trim"), "returned")
    equal("a request whose asker was killed is removed by the next one", other.exists(), False)
    stop(process)


def check_fork_and_descriptors():
    """Children answer for themselves; descriptors and limits of the program are its own."""
    forks = start(WORKS + """
os.close(0)
children = []
print('ready', flush=True)
for i in range(400):
    child = os.fork()
    if child == 0:
        work(0.005)
        assert os.open('/dev/null', os.O_RDONLY) == 0
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    work(0.005)
    assert os.open('/dev/null', os.O_RDONLY) == 0
    os.close(0)
os._exit(23)
""")
    while forks.poll() is None:
        ran = subprocess.run([HAKMEM, "ctl", str(forks.pid), "dump", "-"], capture_output=True,
                             text=True, timeout=300, check=False)
        if ran.returncode == 0:
            equal("the process itself answers", json.loads(ran.stdout)["pid"], forks.pid)
    equal("descriptors are the program's", forks.wait(), 23)
    limited = start(BUSY, prepare=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    says("a program that may write no file", ctl("--wait", "2", limited.pid, "trim", status=1),
         "did not answer")
    equal("goes on", limited.poll(), None)
    stop(limited)
    unthreaded = start(BUSY, HAKMEM_MAINTENANCE="off")
    says("without a thread", ctl(unthreaded.pid, "trim"), "returned")
    says("one thread", pathlib.Path(f"/proc/{unthreaded.pid}/status").read_text(), "Threads:\t1\n")
    stop(unthreaded)


def become(user):
    """For a child: another user."""
    def switch():
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    return switch


def check_users():
    """The same user may ask, and root; nobody else. One that gave up root is root's."""
    python = "/usr/bin/python3"
    try:
        for words in ([HAKMEM, "--version"], ["test", "-r", LIBRARY], [python, "-c", "0"]):
            subprocess.run(words, check=True, preexec_fn=become(1234), capture_output=True)
    except (OSError, subprocess.SubprocessError):
        return  # not root, or others may not read what was built
    theirs = start(BUSY, prepare=become(1234), python=python)
    says("root asks", ctl(theirs.pid, "trim"), "returned")
    says("its user asks", ctl(theirs.pid, "trim", preexec_fn=become(1234)), "returned")
    says("another one", ctl(theirs.pid, "trim", status=1, preexec_fn=become(1235)),
         "cannot determine|another user")
    stop(theirs)
    dropped = start(WORKS + "os.setresgid(1234, 1234, 1234); os.setresuid(1234, 1234, 1234)\n"
                    "print('ready', flush=True); work(1000)")
    says("its user may not", ctl("--wait", "2", dropped.pid, "trim", status=1,
                                 preexec_fn=become(1234)), "cannot determine|did not answer")
    says("root may", ctl(dropped.pid, "trim"), "returned")
    stop(dropped)


def check_containers():
    """A process with a space of ids and a /dev/shm of its own; links there lead nowhere."""
    probe = ["unshare", "--pid", "--fork", "--mount"]
    if shutil.which("unshare") is None or \
            subprocess.run([*probe, "true"], capture_output=True, check=False).returncode != 0:
        return
    inside = "mount -t tmpfs none /dev/shm && exec \"$@\""
    outer = start(BUSY, *probe, "sh", "-c", inside, "sh")
    pid = children(outer.pid)[0]
    says("in a container", ctl(pid, "trim"), f"process {pid}: .*returned")
    row = rows("--ask")[pid]
    equal("ps sees what is live there", row["live_bytes"] is not None, True)
    os.kill(pid, signal.SIGKILL)
    stop(outer)
    with tempfile.TemporaryDirectory() as victim:
        inside = f"mount -t tmpfs none /dev && ln -s {victim} /dev/shm && exec \"$@\""
        outer = start(BUSY, *probe, "sh", "-c", inside, "sh")
        pid = children(outer.pid)[0]
        says("a link instead of /dev/shm", ctl(pid, "trim", status=1), "no /dev/shm")
        equal("nothing was made there", os.listdir(victim), [])
        os.kill(pid, signal.SIGKILL)
        stop(outer)


def check_cost():
    """A process that ends within a second makes no call; one that works, one a second, of those
    that it lived: where the machine kept it from working, fewer."""
    if shutil.which("strace") is None:
        return
    lives = """
ticks = int(open('/proc/self/stat').read().rpartition(')')[2].split()[19])
print(time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf('SC_CLK_TCK'), longest)
"""
    for seconds in (0.5, 3.5):
        log = pathlib.Path(WORK) / "calls"
        program = WORKS + f"longest = work({seconds})" + lives
        ran = subprocess.run(["strace", "-f", "-o", log, "-e", "trace=faccessat,faccessat2",
                              "-E", f"LD_PRELOAD={LIBRARY}", "-E", "PYTHONMALLOC=malloc", PYTHON,
                              "-c", program], capture_output=True, check=False)
        if ran.returncode != 0:
            return
        count = log.read_text().count(".request")
        lived, longest = map(float, ran.stdout.split())
        if not int(seconds / (1 + longest)) - 1 <= count <= int(lived):
            fail(f"{count} calls in {lived} s, without work for up to {longest} s")


def at_once(*checks):
    """Checks, each in a process with a /dev/shm of its own; they wait most of the time."""
    own_shm = pathlib.Path(__file__).resolve().parent.parent / "own_shm"
    running = {check.__name__: subprocess.Popen([own_shm, sys.executable, __file__, check.__name__])
               for check in checks}
    equal("checks that failed", [name for name, one in running.items() if one.wait() != 0], [])


def main():
    """The check of that name, or all."""
    if sys.argv[1:]:
        try:
            globals()[sys.argv[1]]()
        finally:
            processes.end_all()
            shutil.rmtree(WORK)
        return
    shutil.rmtree(WORK)
    at_once(check_later, check_silent, check_many, check_gone, check_hostile,
            check_fork_and_descriptors, check_users, check_cost)
    at_once(check_requests)  # asks all processes (ps --ask), as does the next one
    at_once(check_containers)
    print("well")


main()

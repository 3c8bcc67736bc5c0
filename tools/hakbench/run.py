# SPDX-License-Identifier: MIT
"""The runs of a session: interleaved A B C A B C, one JSON line each, written as they are made.

A session that was cut is opened again and goes on: rounds that are whole are not repeated.
"""
import json
import shlex
from dataclasses import asdict, dataclass
from datetime import datetime, timezone

from . import counts, environment, launcher, plan, verify
from .peers import Peer, digest

AGAIN = " (again)"
WARM_UP = -1


class SessionError(Exception):
    """A session cannot be found, or cannot go on."""


@dataclass(frozen=True)
class Arm:
    """A column of a comparison; the first allocator has two, to learn what chance does."""
    label: str
    peer: Peer


def arms_for(peers):
    """The arms of a round in their order."""
    return [*(Arm(peer.name, peer) for peer in peers), Arm(peers[0].name + AGAIN, peers[0])]


def sessions(root):
    """The folders of all sessions, oldest first."""
    return sorted(path.parent for path in (root / "out/bench").glob("*/runs.jsonl"))


def find(root, name=None):
    """The folder of the named session, or of the last one."""
    found = [path for path in sessions(root) if name in (None, path.name)]
    if not found:
        named = f"'{name}' " if name is not None else ""
        raise SessionError(f"no session {named}in out/bench (./hak bench makes one)")
    return found[-1]


class Session:
    """A folder out/bench/DATE/ whose runs.jsonl holds everything that was measured."""

    def __init__(self, root, folder, quick, repeats):
        self.root, self.folder, self.quick, self.repeats = root, folder, quick, repeats
        self.path = folder / "runs.jsonl"
        self.failures = 0
        self.hidden = ()
        self._proofs = {}
        self._done = {}
        self._failed = set()
        self._counted = set()

    @classmethod
    def create(cls, root, quick, repeats, into=None):
        """A session in a new folder of out/bench, or in the folder `into`."""
        if into:
            if (into / "runs.jsonl").exists():
                raise SessionError(f"{into} holds a session already")
            into.mkdir(parents=True, exist_ok=True)
            return cls(root, into, quick, repeats)
        stamp = datetime.now(timezone.utc).strftime("%Y-%m-%d_%H-%M-%S")
        base = root / "out/bench"
        folder = base / stamp
        number = 1
        while folder.exists():
            number += 1
            folder = base / f"{stamp}_{number}"
        folder.mkdir(parents=True)
        return cls(root, folder, quick, repeats)

    @classmethod
    def resume(cls, root, folder):
        """(session, its header) of a session that was cut."""
        path = folder / "runs.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines()
        records = list(_sound(lines))
        header = next((record for record in records if record["record"] == "session"), None)
        if header is None:
            raise SessionError(f"{folder.name} has no beginning")
        if len(records) < len(lines):
            path.write_text("".join(json.dumps(record) + "\n" for record in records),
                            encoding="utf-8")
        session = cls(root, folder, header["quick"], header["repeats"])
        for record in records:
            session._remember(record)
        session.write("resumed", environment=environment.describe(root))
        return session, header

    def discard(self):
        """Removes a session in which nothing could be measured; the folder, if it is empty then."""
        self.path.unlink()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    @property
    def shared(self):
        """The folder of what the pages of sessions share."""
        base = self.root / "out/bench"
        return base if self.folder.parent == base else self.folder

    def _remember(self, record):
        kind = record["record"]
        if kind in ("run", "warmup"):
            number = record["round"] if kind == "run" else WARM_UP
            self._done.setdefault((record["case"], number), set()).add(record["arm"])
        elif kind == "error":
            self._failed.add((record["case"], record["allocator"]))
            self.failures += 1
        elif kind == "proof":
            self._proofs[record["workload"], record["allocator"]] = None
        elif kind in ("syscalls", "instructions"):
            self._counted.add((kind, record["case"], record["allocator"]))

    def write(self, record, **values):
        """Adds a record, in which nothing says where the repository or a suite lies."""
        line = json.dumps({"record": record} | values).replace(f"{self.root}/", "")
        for prefix in self.hidden:
            line = line.replace(f"{prefix}/", "")
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def fail(self, case, peer, error):
        """Writes down that there is no number, and why; the arm is not tried again."""
        if (case.name, peer.name) not in self._failed:
            self._failed.add((case.name, peer.name))
            self.failures += 1
            self.write("error", case=case.name, allocator=peer.name, message=str(error))

    def begin(self, cases, peers):
        """Writes down what is compared, and where."""
        self.write("session", environment=environment.describe(self.root), quick=self.quick,
                   repeats=self.repeats, allocators=[self._describe(peer) for peer in peers],
                   cases=[{"name": case.name, "title": case.title, "known": case.known,
                           "group": case.group, "threads": case.threads, "curve": case.curve,
                           "command": shown(case.words(self.quick))} for case in cases])

    def _describe(self, peer):
        library = peer.library
        inside = library and library.is_relative_to(self.root)
        return {"name": peer.name, "title": peer.title, "version": peer.version,
                "origin": peer.origin, "digest": digest(library), "environment": peer.environment,
                "library": str(library.relative_to(self.root)) if inside
                else library.name if library else ""}

    def prove(self, case, peer, advance=lambda seconds: None):
        """True if the peer serves the case's program; otherwise the error is written down."""
        key = case.workload, peer.name
        if key not in self._proofs:
            if case.command:
                advance(case.estimate(self.quick))
            try:
                proof = verify.check(self.root, case, peer)
            except (verify.WrongAllocator, launcher.RunError) as error:
                self._proofs[key] = str(error)
            else:
                self.write("proof", workload=case.workload, allocator=peer.name, proof=proof)
                self._proofs[key] = None
        if self._proofs[key]:
            self.fail(case, peer, self._proofs[key])
        return self._proofs[key] is None

    def measure(self, case, arms, advance):
        """Warms up, then runs all arms in turn; advance(seconds) is called after each run."""
        budget = len(arms) * (self.repeats + 1)
        try:
            arms = [arm for arm in arms if self.prove(case, arm.peer, advance)]
            # A program from elsewhere has no shorter run to prove by: its proof is its warm-up.
            for number in range(0 if case.command else WARM_UP, self.repeats):
                if not self._is_whole(case, arms, number):
                    for arm in self._alive(case, arms):
                        self._run(case, arm, number)
                        advance(case.estimate(self.quick))
                        budget -= 1
        except launcher.Skipped as reason:
            self.write("skip", case=case.name, reason=str(reason))
        advance(max(budget, 0) * case.estimate(self.quick))

    def _alive(self, case, arms):
        for arm in arms:
            if (case.name, arm.peer.name) not in self._failed:
                yield arm

    def _is_whole(self, case, arms, number):
        done = self._done.get((case.name, number), set())
        return all(arm.label in done for arm in self._alive(case, arms))

    def _run(self, case, arm, number):
        """One run; the first round is the warm-up, whose figures are those of a cold start."""
        try:
            done = launcher.run(self.root, case.words(self.quick),
                                verify.environment(case, arm.peer) | self._length(case),
                                verify.mapped_end(arm.peer), case.place)
            verify.check_run(arm.peer, done, case)
            result = case.read(done)
        except (launcher.RunError, verify.WrongAllocator, ValueError) as error:
            self.fail(case, arm.peer, error)
            return
        curve = {"rss": done.rss} if number == 0 else {}
        self.write("run" if number >= 0 else "warmup", case=case.name, arm=arm.label,
                   round=max(number, 0), served=done.served, **result, **asdict(done.cost), **curve)

    def _length(self, case):
        return {"BENCH_QUICK": "1"} if case.script and self.quick else {}

    def count(self, case, peers, kind):
        """Counts system calls or instructions of a case's tiny run, once for each allocator."""
        for peer in peers:
            failed = (case.name, peer.name) in self._failed
            if failed or (kind, case.name, peer.name) in self._counted:
                continue
            try:
                counted = counts.COUNTERS[kind](self.root, case, peer)
            except counts.CannotCount as error:
                self.write("uncounted", kind=kind, case=case.name, allocator=peer.name,
                           message=str(error))
            else:
                self.write(kind, case=case.name, allocator=peer.name, **counted)


def _sound(lines):
    """The records; a line that was cut short is left out."""
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def check_unchanged(header, peers):
    """Raises SessionError if an allocator is not the one that the session began with."""
    now = {peer.name: digest(peer.library) for peer in peers}
    for known in header["allocators"]:
        if known["name"] not in now:
            raise SessionError(f"{known['name']} is not there any more")
        if known["digest"] != now[known["name"]]:
            raise SessionError(f"{known['name']} is another build than the session began with")


def shown(words):
    """A command line as it can be typed; those of our own are plain words."""
    return shlex.join(words)


def estimate_s(cases, peers, quick, repeats):
    """About how long the runs of all cases take, in seconds."""
    return sum((len(peers) + 1) * (repeats + 1) * case.estimate(quick) for case in cases)

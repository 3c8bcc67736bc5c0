# SPDX-License-Identifier: MIT
"""The runs of a session: interleaved A B C A B C, one JSON line each, written as they are made."""
import json
from dataclasses import asdict, dataclass
from datetime import datetime, timezone

from . import environment, launcher, plan, verify
from .peers import Peer

AGAIN = " (again)"


@dataclass(frozen=True)
class Arm:
    """A column of a comparison; the first allocator has two, to learn what chance does."""
    label: str
    peer: Peer


def arms_for(case, peers, noop):
    """The arms of a case in the order of a round."""
    arms = [Arm(peer.name, peer) for peer in peers]
    arms.append(Arm(peers[0].name + AGAIN, peers[0]))
    if case.minus_noop and noop:
        arms.append(Arm(noop.name, noop))
    return arms


class Session:
    """A folder out/bench/DATE/ whose runs.jsonl holds everything that was measured."""

    def __init__(self, root, quick, repeats):
        self.root, self.quick, self.repeats = root, quick, repeats
        self.folder = root / "out/bench" / datetime.now(timezone.utc).strftime("%Y-%m-%d_%H-%M-%S")
        self.folder.mkdir(parents=True)
        self.path = self.folder / "runs.jsonl"
        self.failures = 0
        self._proofs = {}

    def write(self, record, **values):
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"record": record} | values) + "\n")

    def fail(self, case, peer, error):
        self.failures += 1
        self.write("error", case=case.name, allocator=peer.name, message=str(error))

    def begin(self, cases, peers):
        """Writes down what is compared, and where."""
        self.write("session", environment=environment.describe(self.root), quick=self.quick,
                   repeats=self.repeats, allocators=[self._describe(peer) for peer in peers],
                   cases=[{"name": case.name, "title": case.title,
                           "command": " ".join(case.words(self.quick)),
                           "minus_noop": case.minus_noop} for case in cases])

    def _describe(self, peer):
        library = str(peer.library.relative_to(self.root)) if peer.library else ""
        return {"name": peer.name, "title": peer.title, "version": peer.version,
                "library": library, "environment": peer.environment}

    def prove(self, case, peer):
        """True if the peer serves the case's program; otherwise the error is written down."""
        key = case.workload, peer.name
        if key not in self._proofs:
            try:
                proof = verify.check(self.root, case, peer)
            except (verify.WrongAllocator, launcher.RunError) as error:
                self.fail(case, peer, error)
                self._proofs[key] = False
            else:
                self.write("proof", workload=case.workload, allocator=peer.name, proof=proof)
                self._proofs[key] = True
        return self._proofs[key]

    def measure(self, case, arms, advance):
        """Warms up, then runs all arms in turn; advance(seconds) is called after each run."""
        arms = [arm for arm in arms if self.prove(case, arm.peer)]
        for number in range(-1, self.repeats):
            for arm in arms:
                self._run(case, arm, number)
                advance(case.estimate(self.quick))

    def _run(self, case, arm, number):
        """One run; number -1 is the warm-up."""
        try:
            stdout, _, cost = launcher.run(self.root, case.words(self.quick), arm.peer.variables())
            result = plan.read_output(stdout)
        except (launcher.RunError, ValueError) as error:
            self.fail(case, arm.peer, error)
            return
        self.write("run" if number >= 0 else "warmup", case=case.name, arm=arm.label,
                   round=max(number, 0), **result, **asdict(cost))


def estimate_s(cases, peers, noop, quick, repeats):
    """About how long the runs of all cases take, in seconds."""
    return sum(len(arms_for(case, peers, noop)) * (repeats + 1) * case.estimate(quick)
               for case in cases)

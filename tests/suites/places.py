# SPDX-License-Identifier: MIT
"""places.py - where suites are built and run: a chroot of Debian's release under out/suites.

Packages and sources come from the mirror that the machine's own apt sources name; the machine's
settings do not change. What runs has process, mount and network namespaces of its own: nothing
outlives a run, and the tests reach nothing but loopback.
"""
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/machines"))
from packages import KEYRING, Missing, codename, mirror, sources  # noqa: E402

STORE = ROOT / "out/suites"
USER = 2000
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# Of one process: a file of 2 GiB; no cores.
LIMITS = ("prlimit", "--core=0", f"--fsize={2 << 30}")
ROOT_PACKAGES = "build-essential,ccache,debhelper,fakeroot,locales-all,procps"
# What an installation that was cut off left comes first.
BUILD_DEP = "dpkg --configure -a && apt-get build-dep -y -q --arch-only -P nodoc"
# Mounts of the chroot's own, and its loopback. What the command leaves running may end by itself
# first, as a server does that was told to.
ENTRY = """
set -e
root=$1
shift
wait_for_others() {
    left=50
    while set -- "$root"/proc/[0-9]*; [ $# -gt 1 ] && [ $left -gt 0 ]; do
        sleep 0.1
        left=$((left - 1))
    done
}
[ -z "$alone" ] || ip link set lo up
if [ "$root" != / ]; then
    mount -t proc proc "$root/proc"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777,size=1G tmpfs "$root/dev/shm"
    mount -t tmpfs -o mode=1777,size=2G tmpfs "$root/tmp"
    chroot "$root" "$@" && status=0 || status=$?
else
    mount -t proc proc /proc
    "$@" && status=0 || status=$?
fi
wait_for_others
exit $status
"""


def debian_sources():
    """(URI, suite) of each Debian source of the machine's release."""
    name = codename()
    return [(uri, suite) for uri, suites, parts in sources() if "main" in parts
            for suite in suites if suite.split("-")[0] == name]


def source_lines(kinds):
    lines = [f"{kind} [signed-by={KEYRING}] {uri} {suite} main"
             for kind in kinds for uri, suite in debian_sources()]
    if not lines:
        raise Missing("the machine's sources name no mirror")
    return "\n".join(lines) + "\n"


def can_unshare():
    """Whether namespaces, and an address of loopback, are to be had."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip", "mount"))):
        return False
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "sh", "-c",
             "ip link set lo up && mount -t proc proc /proc"]
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def wait(process, limit_s):
    """The exit status; 124 after the limit, when the whole group has been killed. A second counts
    once: for a group that is stopped with us, time stands still."""
    try:
        while limit_s > 0:
            try:
                return process.wait(min(limit_s, 1))
            except subprocess.TimeoutExpired:
                limit_s -= 1
        return 124
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def versions_in(showsrc):
    """The versions that apt-cache showsrc printed, the newest first."""
    return sorted(set(re.findall(r"^Version: (\S+)$", showsrc, re.M)),
                  key=functools.cmp_to_key(compare_versions), reverse=True)


def compare_versions(left, right):
    for relation, answer in (("lt", -1), ("gt", 1)):
        words = ["dpkg", "--compare-versions", left, relation, right]
        if subprocess.run(words, check=False).returncode == 0:
            return answer
    return 0


class Place:
    """A folder for packages. `inside` is that folder as programs in the place see it."""

    root = pathlib.Path("/")
    user = None

    def __init__(self, store):
        self.store = store
        self.inside = pathlib.Path("/") / store.relative_to(self.root)
        self.is_alone = can_unshare()

    def tree(self, package):
        return self.store / package

    def environment(self):
        home = self.inside / "home"
        return {"PATH": PATH, "HOME": str(home), "LC_ALL": "C.UTF-8", "TERM": "dumb",
                "USER": "builder", "LOGNAME": "builder", "SHELL": "/bin/sh",
                "DEBIAN_FRONTEND": "noninteractive", "MAKEFLAGS": ""}

    def words(self, script, folder, as_user, network):
        """The command that runs a script in the place."""
        inner = ["sh", "-c", f'cd "{folder}" && {script}']
        if as_user and self.user is not None:
            inner = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups",
                     *inner]
        if not self.is_alone:
            return [*LIMITS, *inner]
        net = [] if network else ["--net"]
        return [*LIMITS, "unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", *net,
                "sh", "-c", ENTRY, "entry", str(self.root), *inner]

    def run(self, script, folder, log, limit_s, as_user=True, network=False, more=None):
        """Runs a script in a folder of the place; what it prints goes to a log."""
        environment = {**self.environment(), **(more or {})}
        if not network and self.is_alone:
            environment["alone"] = "1"
        with open(log, "ab") as output:
            # pylint: disable-next=consider-using-with
            process = subprocess.Popen(self.words(script, folder, as_user, network),
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                       env=environment, start_new_session=True)
            return wait(process, limit_s)

    def gather(self, packages, log):
        """What the builds of several packages need, where a place can have it at once."""

    def remove(self, package):
        shutil.rmtree(self.tree(package), ignore_errors=True)


class Chroot(Place):
    """A folder with Debian's release, in which build dependencies are installed."""

    user = USER

    def __init__(self):
        self.root = STORE / "root"
        if not can_unshare():
            raise Missing("no right to make namespaces: suites are built in a chroot, as root")
        for program in ("mmdebstrap", "chroot", "setpriv"):
            if shutil.which(program) is None:
                raise Missing(f"no {program}: ./hak test --full installs it")
        if not (self.root / "ready").exists():
            self.make()
        super().__init__(self.root / "build")

    def make(self):
        """The release as it is, an unprivileged user, and no servers that start."""
        STORE.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.root, ignore_errors=True)
        log = STORE / "root.log"
        with open(log, "wb") as output:
            status = subprocess.call(
                ["mmdebstrap", "--variant=minbase", f"--include={ROOT_PACKAGES}", codename(),
                 str(self.root), mirror()], stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        if status != 0:
            raise Missing(f"no chroot: {last_line(log)}")
        etc = self.root / "etc"
        (etc / "apt/sources.list").write_text(source_lines(("deb", "deb-src")))
        (etc / "apt/apt.conf.d/90suites").write_text(
            'APT::Sandbox::User "root";\nAPT::Install-Recommends "false";\n'
            'Acquire::Languages "none";\n')
        for name in ("resolv.conf", "hosts"):
            if os.path.exists(f"/etc/{name}"):
                shutil.copy(f"/etc/{name}", etc / name)
        (etc / "dpkg/dpkg.cfg.d/suites").write_text("force-unsafe-io\n")
        with open(etc / "passwd", "a", encoding="ascii") as file:
            file.write(f"builder:x:{USER}:{USER}::/build/home:/bin/sh\n")
        with open(etc / "group", "a", encoding="ascii") as file:
            file.write(f"builder:x:{USER}:\n")
        policy = self.root / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        home = self.root / "build/home"
        home.mkdir(parents=True)
        for folder in (home, home.parent):
            os.chown(folder, USER, USER)
        (self.root / "ready").touch()

    def root_script(self, script, log, limit_s):
        return self.run(script, "/", log, limit_s, as_user=False, network=True)

    def update(self):
        """Has the package lists."""
        stamp = self.root / "updated"
        log = STORE / "update.log"
        if not stamp.exists():
            log.unlink(missing_ok=True)
            if self.root_script("apt-get update", log, 200) != 0:
                raise Missing(f"no package lists: {last_line(log)}")
            stamp.touch()

    def versions(self, package):
        """The versions in the package lists, the newest first. A mirror may lack the newest."""
        self.update()
        log = STORE / "showsrc.log"
        log.unlink(missing_ok=True)
        self.root_script(f"apt-cache showsrc --only-source {package}", log, 60)
        return versions_in(log.read_text(errors="replace"))

    def gather(self, packages, log):
        """Installs the build dependencies of several packages at once, which takes less time than
        one after the other. Where they exclude each other, fetch installs those of each."""
        self.update()
        log.unlink(missing_ok=True)
        self.root_script(f"{BUILD_DEP} {' '.join(packages)}; apt-get clean", log, 400)

    def source(self, package, log):
        """The newest version whose source the mirror has in full; it is downloaded, and stays.
        None: there is none, or the log says what is missing."""
        for version in self.versions(package):
            script = f"""
                set -e
                mkdir -p /build/sources
                cd /build/sources
                apt-get source -q --only-source --download-only '{package}={version}'"""
            if self.root_script(script, log, 200) == 0:
                return version
        return None

    def fetch(self, package, version, log, more=""):
        """Build dependencies and the unpacked source. False: the log says why not."""
        description = f"{package}_{version.split(':')[-1]}.dsc"
        script = f"""
            set -e
            {BUILD_DEP} '{package}={version}'
            [ -z '{more}' ] || apt-get install -y -q {more}
            apt-get clean
            cd /build/sources
            rm -rf '../{package}'
            dpkg-source --no-check -x '{description}' '../{package}'
            chown -R {USER}:{USER} '../{package}'"""
        return self.root_script(script, log, 400) == 0


def last_line(log):
    lines = pathlib.Path(log).read_text(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "nothing"

# SPDX-License-Identifier: MIT
"""How each foreign allocator is had from a package registry, and built where it comes as sources.

A recipe's `make` gets an empty folder, leaves the library in it and returns (library, version).
Only the ordinary clients are asked: pip, apt-get, cargo.
"""
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

DOWNLOAD_TIMEOUT_S = 300
BUILD_TIMEOUT_S = 900


class RecipeError(Exception):
    """An allocator cannot be had, and why."""


@dataclass(frozen=True)
class Recipe:
    """package     what is asked for, with its version where the registry keeps old ones
    make        (folder, recipe, say) -> (library, version); say(text) tells how far it is
    file        the library's name
    environment variables that the allocator needs to run at its best, or at all
    """
    title: str
    registry: str
    package: str
    file: str
    make: Callable
    environment: dict = field(default_factory=dict)


def call(words, folder, timeout_s=DOWNLOAD_TIMEOUT_S):
    """Runs a command in the folder; raises RecipeError with its last complaint if it fails."""
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace",
                              timeout=timeout_s)
    except OSError as error:
        raise RecipeError(f"{words[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise RecipeError(f"{words[0]}: still running after {timeout_s} s") from None
    if done.returncode:
        raise RecipeError(f"{words[0]}: {_complaint(done)}")
    return done.stdout


def _complaint(done):
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or [f"status {done.returncode}"])[0 if errors else -1]


def need(command, package):
    """Makes sure that a command exists, by its Debian package where that is allowed."""
    if shutil.which(command):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        words = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
        try:
            call(words, "/")
        except RecipeError:
            call(["apt-get", "update", "-qq"], "/")
            call(words, "/")
    if not shutil.which(command):
        raise RecipeError(f"{command} is missing (apt-get install {package})")


def find(folder, name):
    """The file of that name, links followed."""
    found = sorted(path for path in folder.rglob(name) if path.exists())
    if not found:
        raise RecipeError(f"the package holds no {name}")
    return found[0].resolve()


def from_wheel(folder, recipe, say):
    """Unpacks a wheel."""
    say(f"downloading {recipe.package}")
    call([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:",
          "--disable-pip-version-check", recipe.package], folder)
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        raise RecipeError("pip brought no wheel")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(folder / "files")
    return find(folder, recipe.file), recipe.package.partition("==")[2]


def from_debian(folder, recipe, say):
    """Unpacks a Debian package without installing it, which needs no root."""
    say(f"downloading {recipe.package}")
    try:
        call(["apt-get", "download", "-qq", recipe.package], folder)
    except RecipeError:
        if os.geteuid() != 0:
            raise
        call(["apt-get", "update", "-qq"], folder)
        call(["apt-get", "download", "-qq", recipe.package], folder)
    package = next(folder.glob("*.deb")).name
    call(["dpkg-deb", "-x", package, "files"], folder)
    return find(folder, recipe.file), call(["dpkg-deb", "-f", package, "Version"], folder).strip()


def crate(folder, recipe, say):
    """The sources of a crate of exactly the recipe's version, through a project that names it."""
    need("cargo", "cargo-web")
    say(f"downloading {recipe.package}")
    name, version = recipe.package.split("==")
    (folder / "src").mkdir()
    (folder / "src/lib.rs").touch()
    (folder / "Cargo.toml").write_text(
        f'[package]\nname = "peer"\nversion = "0.0.0"\nedition = "2018"\n[workspace]\n'
        f'[dependencies]\n{name} = "={version}"\n', encoding="utf-8")
    call(["cargo", "vendor", "-q"], folder)
    return folder / "vendor" / name, version


def compiler_words():
    """The C and C++ compilers, present or named as missing."""
    need("gcc", "gcc")
    need("g++", "g++")


def build_jemalloc(folder, recipe, say):
    """The crate carries jemalloc and a configure script beside it."""
    sources, version = crate(folder, recipe, say)
    compiler_words()
    need("make", "make")
    build = sources / "jemalloc"
    shutil.copy(sources / "configure/configure", build)
    metadata = (sources / "Cargo.toml").read_text(encoding="utf-8")
    full = re.search(r'^version = "[^+"]+\+([^"]+)"', metadata, re.M)
    full = full[1] if full else version
    say("configuring jemalloc")
    call(["sh", "configure", f"--with-version={full}", "--disable-static", "--disable-doc"], build,
         BUILD_TIMEOUT_S)
    say("compiling jemalloc")
    call(["make", f"-j{os.cpu_count()}", "lib/libjemalloc.so.2"], build, BUILD_TIMEOUT_S)
    return build / "lib/libjemalloc.so.2", full.split("-")[0]


def build_snmalloc(folder, recipe, say):
    """By snmalloc's own CMake project, its ordinary preloadable library without checks."""
    sources, version = crate(folder, recipe, say)
    compiler_words()
    need("cmake", "cmake")
    say("compiling snmalloc")
    call(["cmake", "-S", "upstream", "-B", "build", "-DCMAKE_BUILD_TYPE=Release",
          "-DSNMALLOC_BUILD_TESTING=OFF"], sources, BUILD_TIMEOUT_S)
    call(["cmake", "--build", "build", "--target", "snmallocshim"], sources, BUILD_TIMEOUT_S)
    return sources / "build/libsnmallocshim.so", version


def build_rpmalloc(folder, recipe, say):
    """One C file, with the flags of rpmalloc's own release build for preloading."""
    sources, version = crate(folder, recipe, say)
    compiler_words()
    say("compiling rpmalloc")
    room = sources / "rpmalloc/rpmalloc"
    call(["gcc", "-shared", "-fPIC", "-O3", "-DNDEBUG", "-std=gnu11", "-w", "-funroll-loops",
          "-fno-math-errno", "-ftls-model=initial-exec", "-D_GNU_SOURCE", "-DENABLE_PRELOAD=1",
          "-DENABLE_OVERRIDE=1", "rpmalloc.c", "-o", recipe.file, "-pthread"], room)
    changes = (sources / "rpmalloc/CHANGELOG").read_text(encoding="utf-8").splitlines()
    return room / recipe.file, f"{changes[0].strip()} ({version.partition('+')[2]})"


def build_tcmalloc(folder, recipe, say):
    """The crate's build script lists the sources; here they also bring their own malloc."""
    sources, version = crate(folder, recipe, say)
    compiler_words()
    script = (sources / "build.rs").read_text(encoding="utf-8")
    files = [name for name in re.findall(r'"(c_src/[^"]+\.(?:cc|S))"', script)
             if "_bridge" not in name] + ["c_src/tcmalloc/tcmalloc/tcmalloc.cc"]
    flags = ["-O2", "-DNDEBUG", "-fPIC", "-std=c++17", "-w", "-DNOMINMAX",
             "-DTCMALLOC_INTERNAL_8K_PAGES", "-ftls-model=initial-exec",
             "-Ic_src/abseil-cpp", "-Ic_src/tcmalloc"]

    def compile_one(place, name):
        call(["g++", "-c", *flags, name, "-o", f"{place}.o"], sources, BUILD_TIMEOUT_S)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(compile_one, *item) for item in enumerate(files)]
        for count, job in enumerate(as_completed(jobs), 1):
            say(f"compiling tcmalloc: {count} of {len(jobs)} files")
            job.result()
    call(["g++", "-shared", "-o", recipe.file, *(f"{place}.o" for place in range(len(files))),
          "-pthread"], sources)
    return sources / recipe.file, f"libtcmalloc-sys {version}"


def _machine():
    return {"x86_64": "x86_64", "aarch64": "aarch64"}.get(os.uname().machine, os.uname().machine)


RECIPES = {
    "mimalloc": Recipe("mimalloc 3", "PyPI", "cmeel-mimalloc==3.4.3", "libmimalloc.so",
                       from_wheel),
    "mimalloc2": Recipe("mimalloc 2", "Debian", "libmimalloc2.0", "libmimalloc.so.2.0",
                        from_debian),
    "snmalloc": Recipe("snmalloc", "crates", "snmalloc-sys==0.7.6", "libsnmallocshim.so",
                       build_snmalloc),
    "jemalloc": Recipe("jemalloc", "crates", "tikv-jemalloc-sys==0.7.1", "libjemalloc.so.2",
                       build_jemalloc),
    "jemalloc530": Recipe("jemalloc of Debian", "Debian", "libjemalloc2", "libjemalloc.so.2",
                          from_debian),
    "tcmalloc": Recipe("google/tcmalloc", "crates", "libtcmalloc-sys==0.1.14", "libtcmalloc.so",
                       build_tcmalloc, {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}),
    "gperftools": Recipe("gperftools", "Debian", "libtcmalloc-minimal4",
                         "libtcmalloc_minimal.so.4", from_debian),
    "rpmalloc": Recipe("rpmalloc", "crates", "rpmalloc-sys==0.2.3+b097fd0", "librpmalloc.so",
                       build_rpmalloc),
    "scudo": Recipe("Scudo", "Debian", "libclang-rt-19-dev",
                    f"libclang_rt.scudo_standalone-{_machine()}.so", from_debian),
}


def library_only(folder, library):
    """Moves the library to the folder's top and drops everything else; returns its place."""
    kept = folder.with_name(folder.name + ".keep")
    shutil.copy(library, kept)
    shutil.rmtree(folder)
    folder.mkdir()
    target = folder / Path(library).name
    kept.rename(target)
    target.chmod(0o755)
    return target

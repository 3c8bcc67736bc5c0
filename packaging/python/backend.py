# SPDX-License-Identifier: MIT
"""Makes the wheel of what `./hak build` built: a PEP 517 backend that needs the standard library,
cmake and readelf only. HAKMEM_BUILD names another build folder than out/release."""
import base64
import hashlib
import os
import platform
import re
import subprocess
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIBRARIES = ("libhakmem.so.0", "libhakmem-bounds.so")
STRUCTURES = {"STATS": "hakmem_stats", "RESIDENCY": "hakmem_residency"}


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def version():
    return re.search(r"project\(hakmem VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def fields():
    """The fields of the structures of numbers, as the C header has them."""
    header = (ROOT / "include/hakmem/hakmem.h").read_text()
    lines = ['"""The fields of hakmem/hakmem.h, in order; written by backend.py."""']
    for name, structure in STRUCTURES.items():
        body = re.search(r"struct %s \{(.*?)\n\};" % structure, header, re.S)[1]
        lines += [f"{name} = ("]
        lines += [f'    "{field}",' for field in re.findall(r"uint64_t (\w+);", body)]
        lines += [")"]
    return "\n".join(lines) + "\n"


def platform_tag(files):
    """The oldest system that the files run on: that of the newest symbol of glibc they ask for."""
    asked = re.findall(r"\bGLIBC_2\.(\d+)", run("readelf", "-VW", *map(str, files)))
    if not asked:
        raise SystemExit("the wheel is for glibc only, and what was built is for another libc")
    return f"manylinux_2_{max(map(int, asked))}_{platform.machine()}"


def install(build, stage):
    """Into the stage; the target uninstall still knows what was installed before."""
    manifest = build / "install_manifest.txt"
    before = manifest.read_bytes() if manifest.exists() else None
    try:
        run("cmake", "--install", str(build), "--prefix", stage, "--strip")
    finally:
        if before is not None:
            manifest.write_bytes(before)
        elif manifest.exists():
            manifest.unlink()


def built_files(stage):
    """Where the wheel has the command and the libraries: as they are installed, so that the one
    finds the others."""
    build = Path(os.environ.get("HAKMEM_BUILD", ROOT / "out/release"))
    if not (build / "libhakmem.so").exists():
        raise SystemExit(f"there is no library in {build}: ./hak build")
    install(build, stage)
    files = [Path(stage) / "bin/hakmem",
             *(file for name in LIBRARIES for file in Path(stage).glob(f"lib*/**/{name}"))]
    return {f"hakmem/{file.relative_to(stage)}": file for file in files}


def metadata():
    return (f"Metadata-Version: 2.1\nName: hakmem\nVersion: {version()}\n"
            "Summary: The hakmem memory allocator for Python programs on Linux\n"
            "License: MIT\nRequires-Python: >=3.8\n"
            "Classifier: Operating System :: POSIX :: Linux\n"
            "Description-Content-Type: text/markdown\n\n" + (HERE / "README.md").read_text())


class Wheel:
    """A wheel that is being written: each file goes into the RECORD, and has no date of its own."""

    def __init__(self, path):
        self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, content, mode=0o644):
        entry = zipfile.ZipInfo(name)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | mode) << 16
        self.file.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}\n")

    def close(self, info):
        name = f"{info}/RECORD"
        self.add(name, ("".join(self.record) + f"{name},,\n").encode())
        self.file.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    info = f"hakmem-{version()}.dist-info"
    with tempfile.TemporaryDirectory() as stage:
        built = built_files(stage)
        tag = f"py3-none-{platform_tag(built.values())}"
        name = f"hakmem-{version()}-{tag}.whl"
        wheel = Wheel(Path(wheel_directory) / name)
        for source in sorted((HERE / "hakmem").glob("*.py")):
            wheel.add(f"hakmem/{source.name}", source.read_bytes())
        wheel.add("hakmem/_fields.py", fields().encode())
        for place, file in built.items():
            wheel.add(place, file.read_bytes(), 0o755)
    wheel.add(f"{info}/METADATA", metadata().encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: hakmem {version()}\n"
                               f"Root-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.add(f"{info}/entry_points.txt", b"[console_scripts]\nhakmem = hakmem.__main__:main\n")
    wheel.add(f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes())
    wheel.close(info)
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("the sources of hakmem are those of the whole repository; build a wheel")

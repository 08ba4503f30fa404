"""Zips a folder as a wheel: `wheel.py PARTS OUT`, called by script/wheel.

Equal parts make equal bytes: names are sorted, and no time and no owner goes into the file. The
format is that of the Python packaging guide, "Binary distribution format", 1.0.
"""

import base64
import hashlib
import platform
import re
import sys
import zipfile
from pathlib import Path

# The bundle has a C library of its own, so any machine will do: the oldest glibc that pip knows in
# each spelling, and the oldest musl.
PLATFORMS = ("manylinux2014", "manylinux_2_17", "musllinux_1_1")

METADATA = """\
Metadata-Version: 2.1
Name: parallelrun
Version: {version}
Summary: Runs a Python entry script over a large data set, in parallel
License: Apache-2.0
Keywords: batch,parallel,inference,kubernetes
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Programming Language :: Python :: 3
Requires-Python: >=3.8
Provides-Extra: notebook
Requires-Dist: cloudpickle>=2; extra == "notebook"
Requires-Dist: tqdm; extra == "notebook"
"""

ENTRY_POINTS = """\
[console_scripts]
parallelrun = parallelrun.__main__:main
kubectl-parallelrun = parallelrun.__main__:main
"""


def add(archive, name, content, executable=False):
    """Writes one file; returns its line of RECORD."""
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix: what follows are its modes
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    archive.writestr(entry, content, compresslevel=9)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def write(parts, out):
    """The path of the wheel."""
    release = (parts / "parallelrun/__init__.py").read_text()
    version = re.search(r'^RELEASE = "(.+)"$', release, re.M).group(1)
    platforms = [f"{name}_{platform.machine()}" for name in PLATFORMS]
    wheel = "Wheel-Version: 1.0\nGenerator: parallelrun\nRoot-Is-Purelib: false\n"
    wheel += "".join(f"Tag: py3-none-{name}\n" for name in platforms)
    path = out / f"parallelrun-{version}-py3-none-{'.'.join(platforms)}.whl"
    about = f"parallelrun-{version}.dist-info"
    unfinished = path.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w") as archive:
        record = ""
        for file in sorted(file for file in parts.rglob("*") if file.is_file()):
            executable = bool(file.stat().st_mode & 0o100)
            name = str(file.relative_to(parts))
            if name.startswith("data/"):
                name = f"parallelrun-{version}.data/{name}"  # goes to the environment's own folders
            record += add(archive, name, file.read_bytes(), executable)
        license_text = (parts / "parallelrun/bundle/LICENSE").read_bytes()
        record += add(archive, f"{about}/LICENSE", license_text)
        record += add(archive, f"{about}/METADATA", METADATA.format(version=version).encode())
        record += add(archive, f"{about}/WHEEL", wheel.encode())
        record += add(archive, f"{about}/entry_points.txt", ENTRY_POINTS.encode())
        record += f"{about}/RECORD,,\n"
        add(archive, f"{about}/RECORD", record.encode())
    unfinished.rename(path)
    return path


if __name__ == "__main__":
    made = write(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"{made}: {made.stat().st_size // 1024} kB")
    print(f"install it: pip install {made}")

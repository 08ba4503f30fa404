"""The images of the tests.

Ours are made from a finished build by the project's own Dockerfiles, as docker archives; the users'
from Debian packages, once: they are kept in the cache folder, as a containerd has them.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from waits import Limit

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("PARALLELRUN_BIN") or ROOT / "build/release/bin").resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parallelrun"

VERSION = "0.1.0"
RUNTIME = f"parallelrun/runtime:{VERSION}"
OPERATOR = f"parallelrun/operator:{VERSION}"
PAUSE = "localhost/pause:1"

# Name: suite, packages, user. The samples need scikit-learn; the other has nothing but Python.
USER_IMAGES = {
    "digits:1": ("bookworm", "python3-sklearn,python3-pandas,python3-pil", None),
    "newer:1": ("trixie", "python3", "1000:1000"),
}
# What no program needs to run; it is two thirds of such an image, which every node has to unpack.
_LEFT_OUT = (
    "usr/include",
    "usr/lib/gcc",
    "usr/lib/*/*.a",
    "usr/share/doc",
    "usr/share/locale",
    "usr/share/man",
    "usr/lib/python3/dist-packages/pythran",
    "usr/lib/python3/dist-packages/*/tests",
    "usr/lib/python3/dist-packages/*/*/tests",
)


class ImageFailed(Exception):
    pass


def _run(words, **options):
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    if done.returncode != 0:
        raise ImageFailed(f"{' '.join(map(str, words))}:\n{done.stdout[-4000:]}")
    return done.stdout.strip()


class Builder:
    """buildah with a store of its own in `folder`."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._words = ["buildah", "--root", self.folder / "store", "--runroot", self.folder / "run"]
        self._environment = dict(os.environ, STORAGE_DRIVER="overlay", BUILDAH_ISOLATION="chroot")

    def buildah(self, *words):
        return _run([*self._words, *words], env=self._environment)

    def archive(self, name, file):
        self.buildah("push", "--quiet", name, f"docker-archive:{file}:{name}")
        return file

    def from_dockerfile(self, dockerfile, name, programs, file):
        """One of ours, with `programs` of the finished build."""
        bundle = self.folder / f"bundle-{Path(dockerfile).parent.name}"
        _run([ROOT / "script" / "bundle", BUILD, bundle, *programs])
        words = [
            "--pull=never",
            "--quiet",
            "--build-context",
            f"bundle={bundle}",
            "-f",
            ROOT / dockerfile,
            "-t",
            name,
        ]
        self.buildah("build", *words, "--build-arg", f"VERSION={VERSION}", ROOT)
        return self.archive(name, file)

    def of_version(self, name, version, file):
        """The image NAME:VERSION, which says that it is of that version, made of one of ours."""
        other = f"{name.split(':')[0]}:{version}"
        container = self.buildah("from", "--pull=never", name)
        label = f"org.opencontainers.image.version={version}"
        self.buildah("config", "--label", label, container)
        self.buildah("commit", "--quiet", container, other)
        return self.archive(other, file)

    def from_files(self, name, content, file, user=None, command=None):
        """`content`: pairs of a file (an archive is unpacked) and where it comes to."""
        container = self.buildah("from", "scratch")
        for source, target in content:
            self.buildah("add", "--quiet", container, source, target)
        if user:
            self.buildah("config", "--user", user, container)
        if command:
            self.buildah("config", "--cmd", command, container)
        self.buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", container)
        self.buildah("commit", "--quiet", container, name)
        return self.archive(name, file)


def runtime(builder, folder):
    programs = ["parallelrun-agent", "parallelrun-coordinator"]
    return builder.from_dockerfile(
        "worker-image/Dockerfile", RUNTIME, programs, folder / "runtime.tar"
    )


def operator(builder, folder):
    return builder.from_dockerfile(
        "operator/Dockerfile", OPERATOR, ["parallelrun-operator"], folder / "operator.tar"
    )


def pause(builder, folder):
    """What holds a pod's namespaces."""
    return builder.from_files(
        PAUSE, [("/bin/busybox", "/sleep")], folder / "pause.tar", command="/sleep infinity"
    )


def root_file_system(suite, packages, file):
    options = [f'--customize-hook=rm -rf "$1"/{pattern}' for pattern in _LEFT_OUT]
    if packages:
        options.append(f"--include={packages}")
    _run(["mmdebstrap", "--quiet", "--variant=minbase", *options, suite, file])


def _start_containerd(root, work):
    socket = work / "containerd.sock"
    configuration = work / "containerd.toml"
    configuration.write_text(
        f"""version = 2
root = "{root}"
state = "{work}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "{socket}"
"""
    )
    with open(work / "containerd.log", "w") as log:
        process = subprocess.Popen(["containerd", "-c", configuration], stdout=log, stderr=log)
    limit = Limit(30)
    while subprocess.run(["ctr", "-a", socket, "version"], capture_output=True).returncode != 0:
        if process.poll() is not None or limit.over():
            process.kill()
            raise ImageFailed(
                f"containerd did not start:\n{(work / 'containerd.log').read_text()[-2000:]}"
            )
        time.sleep(0.1)
    return process, socket


def user_store():
    """A root folder of containerd that holds the users' images, unpacked; made once, in minutes.

    A node's own is a copy by hard links (`seed`): what is in it is never written to again.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    recipe = hashlib.sha256(repr((USER_IMAGES, _LEFT_OUT)).encode()).hexdigest()[:12]
    store = CACHE / f"images-{recipe}"
    with open(CACHE / "images.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if store.exists():
            return store
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            work = Path(folder)
            process, socket = _start_containerd(work / "root", work)
            try:
                for name, (suite, packages, user) in USER_IMAGES.items():
                    root_file_system(suite, packages, work / "files.tar")
                    builder = Builder(work / "buildah")
                    archive = builder.from_files(
                        name, [(work / "files.tar", "/")], work / "image.tar", user
                    )
                    _run(["ctr", "-a", socket, "-n", "k8s.io", "images", "import", archive])
                    archive.unlink()
            finally:
                process.terminate()
                process.wait(30)
            (work / "root").rename(store)
    return store


def seed(root):
    """Fills the root folder of a node's containerd with the users' images; it must be new."""
    store = user_store()
    try:
        _run(["cp", "-al", store, root])
    except ImageFailed:  # on another file system
        shutil.rmtree(root, ignore_errors=True)
        _run(["cp", "-a", store, root])
    for database in Path(store).rglob("*.db"):
        copy = Path(root) / database.relative_to(store)
        copy.unlink()
        shutil.copyfile(database, copy)

"""Files that the script writes beside its rows, where they count with the attempt that wrote them.

With `output.sideFiles: Staged` each process has a folder of its own. The script writes below `out`
there; when run() has returned, its files are moved into a folder of the attempt, and the result
names them. Whoever publishes moves those of results that count to their places.

Where the output lies in a store, that folder is on the node's own disk. The agent sends the files
while this process waits, and gives the line that names them, with where they are in the store.
"""

import errno
import json
import os
import shutil
import struct
from hashlib import sha256

from parallelrun.worker.channel import SIDE_FILES, SIDE_FILES_SENT, ProtocolError
from parallelrun.worker.failure import Failure
from parallelrun.worker.status import ENCODING

MAX_FILES = 10_000  # of an attempt
MAX_NAME = 1 << 10  # bytes
MAX_LIST = 1 << 20  # bytes

_NOTHING = b"{}\n"
_U64 = struct.Struct("<Q")
_GOES_ON, _SENT, _NOT_SENT = range(3)  # the first byte of SIDE_FILES_SENT
_READ_SIZE = 1 << 20
_STEP = 64 << 20  # bytes, after which it is said that something moves
_OF_THE_JOB = ".parallelrun"  # names at the top that begin so
_ACCESS_MODE = 3  # O_ACCMODE
_DELETED = " (deleted)"  # as /proc says it: of a failed attempt
_ADVICE = "With output.sideFiles: Staged a file counts with the run() that wrote it"


class SideFiles:
    """One per process; main thread only."""

    def __init__(self, process, page):
        """Makes the folder that the script writes to. Raises OSError."""
        self._folder = process.staging
        self._page = page
        self._channel = process.channel if process.sends_side_files else None
        self._reserved = frozenset(process.reserved_names)
        self._of_the_job = (_OF_THE_JOB, *(f".{name}." for name in process.reserved_names))
        os.makedirs(process.output_folder, exist_ok=True)
        for name in process.output_folders:
            os.makedirs(os.path.join(process.output_folder, name), exist_ok=True)
        if self._channel is None:
            folder = self._folder
            for _ in range(3):  # up to the entry in the output folder
                _sync_folder(folder)
                folder = os.path.dirname(folder)
        else:
            self._remove_earlier()
        self._out = os.path.realpath(process.output_folder)  # as /proc shows it

    def take(self, sequence):
        """Moves what the attempt has written out of the script's reach, and has it sent.

        Returns the line that stands in front of its rows. Raises Failure for what cannot count,
        and OSError.
        """
        files, folders = self._find()
        if not files:
            return _NOTHING
        self._check(files)
        own = os.path.join(self._folder, str(sequence))
        os.mkdir(own)
        for folder in folders:
            os.mkdir(os.path.join(own, folder))
        listed = []
        for name in files:
            path = os.path.join(self._out, name)
            listed.append([name, *self._sync(sequence, path)])
            os.rename(path, os.path.join(own, name))
        if self._channel is None:
            for folder in [*folders, "", os.pardir]:
                _sync_folder(os.path.join(own, folder))
        place = os.path.join(os.path.basename(self._folder), str(sequence))
        line = json.dumps({"folder": place, "files": listed}, separators=(",", ":"))
        line = line.encode() + b"\n"
        if len(line) > MAX_LIST:
            raise _refused(
                f"the list of its {len(files)} files takes {len(line)} bytes; at most {MAX_LIST} "
                "are taken. Lower miniBatchSize, or write fewer files."
            )
        if self._channel is None:
            return line
        try:
            return self._send(sequence, line[:-1]) + b"\n"
        finally:
            shutil.rmtree(own, ignore_errors=True)

    def _send(self, sequence, line):
        """Has the agent send the files that a line names, and gives that with where they are."""
        self._channel.send(SIDE_FILES, _U64.pack(sequence) + line)
        while True:
            answer = self._channel.wait_for(SIDE_FILES_SENT)
            state = answer[0] if answer else -1
            if state == _SENT:
                return answer[1:]
            if state == _NOT_SENT:
                raise _refused(answer[1:].decode("utf-8", "replace"))
            if state != _GOES_ON:
                raise ProtocolError(f"side files were answered by {len(answer)} bytes")
            self._page.enter(sequence, ENCODING)  # the time-out is for what hangs

    def _remove_earlier(self):
        """What a process in this place, which is gone, has left takes this node's disk."""
        folder, own = os.path.split(self._folder)
        for name in os.listdir(folder):
            if name != own and name.startswith(own.rpartition("-")[0] + "-"):
                shutil.rmtree(os.path.join(folder, name), ignore_errors=True)

    def discard(self):
        """Removes what a failed attempt has left."""
        for path in self._all():
            try:
                os.remove(path)
            except FileNotFoundError:  # a thread of the script was first
                pass

    def left_by(self, where):
        """Removes what a function wrote that is of no mini-batch, and says so; None: nothing."""
        names = sorted(os.path.relpath(path, self._out) for path in self._all())
        if not names:
            return None
        self.discard()
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return (
            f"{where} wrote {_shown(names[0])}{more} into the output folder. {_ADVICE}: write it "
            "there, or leave output.sideFiles out."
        )

    def _all(self):
        """The paths of all that is no folder."""
        for folder, folders, names in os.walk(self._out):
            for name in folders:
                if os.path.islink(os.path.join(folder, name)):
                    yield os.path.join(folder, name)
            for name in names:
                yield os.path.join(folder, name)

    def _find(self):
        """The names of all files, and of the folders that hold them, outer ones first."""
        files, folders = [], []
        below = [""]
        while below:
            folder = below.pop()
            here = False
            with os.scandir(os.path.join(self._out, folder)) as entries:
                for entry in entries:
                    name = os.path.join(folder, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        below.append(name)
                    elif entry.is_file(follow_symlinks=False):
                        files.append(name)
                        here = True
                    else:
                        raise _refused(
                            f"{_shown(name)} is a link, or no file at all: write a file there."
                        )
            if here:
                folders.append(folder)
        files.sort()
        return files, _with_parents(folders)

    def _check(self, files):
        if len(files) > MAX_FILES:
            raise _refused(
                f"run() wrote {len(files)} files; at most {MAX_FILES} of a mini-batch are taken. "
                "Lower miniBatchSize, or write fewer files."
            )
        for name in files:
            try:
                size = len(name.encode())
            except UnicodeEncodeError:
                raise _refused(
                    f"the name of {_shown(name)} is not UTF-8: choose another name."
                ) from None
            if size > MAX_NAME:
                raise _refused(f"{_shown(name)}: a name has at most {MAX_NAME} bytes.")
            top = name.split(os.sep, 1)[0]
            if top in self._reserved or top.startswith(self._of_the_job):
                raise _refused(f"{_shown(name)}: the job itself uses {top}: choose another name.")
        name = self._still_open()
        if name is not None:
            raise _refused(
                f"{_shown(name)} was still open for writing when run() had returned. {_ADVICE}: "
                "close it there, as `with open(...)` does, and give each mini-batch files of its "
                "own, since nothing is appended to those of another."
            )

    def _still_open(self):
        """The name of a file that this process can still write to; None: there is none."""
        below = self._out + os.sep
        for number in os.listdir("/proc/self/fd"):
            try:
                path = os.readlink(f"/proc/self/fd/{number}")
                if not path.startswith(below) or path.endswith(_DELETED):
                    continue
                with open(f"/proc/self/fdinfo/{number}", encoding="ascii") as facts:
                    flags = next(line for line in facts if line.startswith("flags:"))
            except (OSError, StopIteration):  # the descriptor of the listing itself, closed by now
                continue
            if int(flags.split()[1], 8) & _ACCESS_MODE != os.O_RDONLY:
                return path[len(below) :]
        return None

    def _sync(self, sequence, path):
        """Makes a file durable, where it stays; its size and SHA-256."""
        digest = sha256()
        size = 0
        shown = 0
        flags = os.O_NOFOLLOW | os.O_CLOEXEC
        try:  # some network volumes sync only what is open for writing
            descriptor = os.open(path, os.O_RDWR | flags)
        except PermissionError:
            descriptor = os.open(path, os.O_RDONLY | flags)
        try:
            if self._channel is None:
                os.fsync(descriptor)
            while True:
                data = os.read(descriptor, _READ_SIZE)
                if not data:
                    return size, digest.hexdigest()
                digest.update(data)
                size += len(data)
                if size - shown >= _STEP:
                    shown = size
                    self._page.enter(sequence, ENCODING)  # the time-out is for what hangs
        finally:
            os.close(descriptor)


def _with_parents(folders):
    """All of them with those that lead there, outer ones first; not the top."""
    found = set()
    for folder in folders:
        while folder:
            found.add(folder)
            folder = os.path.dirname(folder)
    return sorted(found)


def _sync_folder(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network volumes cannot
            raise
    finally:
        os.close(descriptor)


def _shown(name):
    return ascii(name) if not name.isprintable() else f'"{name}"'


def _refused(words):
    return Failure("BadSideFile", words)

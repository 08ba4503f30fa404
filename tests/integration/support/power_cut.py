"""What a disk holds after a power cut, from what disk_recorder.c has written down.

A page counts once its file was synced, a name once its folder was: of the rest a disk may have kept
nothing, or some. What was synced is what had been written when the sync began.
"""

import os
import struct

_NOTE = struct.Struct("<QQIIB7x")
_PAGE = 4096
_BEGIN_OF_SETTLED = 5  # an answer to an exchange: u32 epoch, u8 directive
_SETTLED = struct.Struct("<QIQ")


def read(path):
    """[(kind, inode, at, first, second)]"""
    whole = path.read_bytes()
    notes = []
    place = 0
    while place < len(whole):
        inode, at, first, second, kind = _NOTE.unpack_from(whole, place)
        place += _NOTE.size
        texts = whole[place : place + first], whole[place + first : place + first + second]
        place += first + second
        notes.append((chr(kind), inode, at, *texts))
    assert place == len(whole)
    return notes


class _Durable:
    """Something with changes, the first of which are durable."""

    def __init__(self):
        self.changes = []
        self.synced = 0
        self.syncs = {}

    def begin_sync(self, number):
        self.syncs[number] = len(self.changes)

    def end_sync(self, number):
        self.synced = max(self.synced, self.syncs.pop(number))


class _File(_Durable):
    """A change is (offset, bytes) or (length, None)."""

    def bytes(self, keep):
        content = bytearray()
        for number, (at, data) in enumerate(self.changes):
            if number >= self.synced and not keep(self):
                continue
            end = at if data is None else at + len(data)
            if data is None:
                del content[end:]
            content += bytes(max(0, end - len(content)))
            if data is not None:
                content[at:end] = data
        return bytes(content)

    def write(self, at, data):
        """In pages: each may reach the disk alone."""
        while data:
            size = _PAGE - at % _PAGE
            self.changes.append((at, data[:size]))
            at, data = at + size, data[size:]


class _Folder(_Durable):
    """A change is {name: file, folder or None}: a rename is one. The disk keeps their order."""

    def names(self, count):
        found = {}
        for change in self.changes[:count]:
            found.update(change)
        return {name: node for name, node in found.items() if node is not None}

    @property
    def now(self):
        return self.names(len(self.changes))


class Disk:
    def __init__(self, folder, files=()):
        """`files` as `after_cut` gives them: what is there already, durable."""
        self.folder = str(folder)
        self.root = _Folder()
        self.inodes = {}
        self.sent = {}  # of each connection
        for path, data in sorted(dict(files).items()):
            node = _Folder() if data is None else _File()
            if data:
                node.write(0, data)
            self._change(os.path.join(self.folder, path).encode(), node)
            for changed in (node, self._find(os.path.join(self.folder, path).encode())[0]):
                changed.synced = len(changed.changes)

    def _find(self, path):
        """(folder, name) of a path below the root."""
        *above, name = os.path.relpath(path.decode(), self.folder).split("/")
        folder = self.root
        for part in above:
            folder = folder.now[part]
        return folder, name

    def _change(self, path, node):
        folder, name = self._find(path)
        folder.changes.append({name: node})

    def apply(self, note):
        kind, inode, at, first, second = note
        if kind == "S":
            self.sent.setdefault(inode, bytearray()).extend(first)
        elif kind == "D":
            folder, name = self._find(first)
            self.inodes[inode] = self.root if name == "." else folder.now[name]
        elif kind in "OM":
            folder, name = self._find(first)
            if name not in folder.now:
                folder.changes.append({name: _File() if kind == "O" else _Folder()})
            self.inodes[inode] = folder.now[name]
        elif kind == "U":
            folder, name = self._find(first)
            gone = folder.now[name]
            folder.changes.append({name: None})
            # The system gives the number to another file, maybe to one that is not ours.
            self.inodes = {number: node for number, node in self.inodes.items() if node is not gone}
        elif kind == "L":
            source, name = self._find(first)
            self._change(second, source.now[name])
        elif kind == "R":
            (source, old), (target, new) = self._find(first), self._find(second)
            node = source.now[old]
            if source is target:
                source.changes.append({old: None, new: node})
            else:
                source.changes.append({old: None})
                target.changes.append({new: node})
        elif inode in self.inodes:
            node = self.inodes[inode]
            if kind == "W":
                node.write(at, first)
            elif kind == "T":
                node.changes.append((at, None))
            elif kind == "B":
                node.begin_sync(at)
            elif at in node.syncs:
                node.end_sync(at)

    def told(self):
        """(mini-batch, fence) of each result that a node was told to forget: it is durable."""
        return {name for bytes_sent in self.sent.values() for name in _settled(bytes(bytes_sent))}

    def files(self):
        """{path: bytes} as a program sees them, without a power cut."""
        return self._files(lambda node: True, lambda folder: len(folder.changes))

    def after_cut(self, kept=None):
        """The same, behind a power cut; `kept`, a Random, decides what of the rest was kept."""
        if kept is None:
            return self._files(lambda node: False, lambda folder: folder.synced)
        keeps = {}

        def some(folder):
            return kept.randint(folder.synced, len(folder.changes))

        def page(node):
            # Of some files nothing, of some all, of others page by page.
            share = keeps.setdefault(id(node), kept.choice([0.0, 0.5, 1.0]))
            return kept.random() < share

        return self._files(page, some)

    def _files(self, keep, count):
        found = {}

        def walk(folder, path):
            for name, node in folder.names(count(folder)).items():
                if isinstance(node, _Folder):
                    found[path + name] = None
                    walk(node, f"{path}{name}/")
                else:
                    found[path + name] = node.bytes(keep)

        walk(self.root, "")
        return found


def _settled(stream):
    place = 0
    while (end := stream.find(b"\r\n\r\n", place)) >= 0:
        head = stream[place:end].decode("latin-1").lower()
        lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        size = int(lines.get("content-length", 0))
        body = stream[end + 4 : end + 4 + size]
        place = end + 4 + size
        if len(body) < size:
            return  # the power went while it was sent
        if head.startswith("http/1.1 200") and "octet-stream" in lines.get("content-type", ""):
            (count,) = struct.unpack_from("<I", body, _BEGIN_OF_SETTLED)
            for number in range(count):
                place_of = _BEGIN_OF_SETTLED + 4 + number * _SETTLED.size
                batch, epoch, fence = _SETTLED.unpack_from(body, place_of)
                yield batch, f"{epoch}.{fence}"


def restore(files, folder):
    """Writes {path: bytes} below a new folder."""
    folder.mkdir()
    for path, data in files.items():
        place = folder / path
        if data is None:
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)

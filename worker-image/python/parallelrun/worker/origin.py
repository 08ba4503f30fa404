"""Where rows come from: the columns that output.provenance adds (docs/formats.md)."""

import json

from parallelrun.worker.plain import Refused, shown

NAMES = ("_file", "_row", "_minibatch")


class Origin:
    """That of the rows of one mini-batch of `items` items in `files`, which may be unknown."""

    def __init__(self, mini_batch, files, items):
        self.mini_batch = mini_batch
        self._files = files
        self._items = items

    def files(self, rows):
        """The file of each of so many rows, or None; with one row an item, that of its item."""
        if len(self._files) == 1:
            return self._files * rows
        if len(self._files) == self._items == rows:
            return self._files
        return [None] * rows

    def add_to_json(self, lines):
        """The lines, each a JSON object, with the three members."""
        files = self.files(len(lines))
        for row, (line, file) in enumerate(zip(lines, files)):
            if not line.startswith("{"):
                mend = "Return a dict for each row, as output.provenance adds names to it."
                raise RefusedAt(row, Refused("", "no object", mend))
            if any(f'"{name}":' in line for name in NAMES):
                _check(row, json.loads(line))
            members = json.dumps(dict(zip(NAMES, (file, row, self.mini_batch))), ensure_ascii=False)
            between = "" if line == "{}" else ", "
            yield f"{line[:-1]}{between}{members[1:]}"

    def add_to_csv(self, names, rows, quoted):
        """(names, rows) with the three columns behind the others."""
        _check(0, names)
        files = ["" if file is None else quoted(file) for file in self.files(len(rows))]
        ends = enumerate(zip(rows, files))
        added = [f"{row},{file},{i},{self.mini_batch}" for i, (row, file) in ends]
        return [*names, *NAMES], added


class RefusedAt(Refused):
    """The same, with the row that it is about."""

    def __init__(self, row, refused):
        super().__init__(refused.place, refused.what, refused.mend)
        self.row = row


def _check(row, names):
    for name in NAMES:
        if name in names:
            what = f"with the column {shown(name)}, which output.provenance adds"
            raise RefusedAt(row, Refused("", what, "Rename one."))

"""Rows as JSON, one on each line: from what run() returned to bytes that every reader takes."""

from parallelrun.worker.origin import RefusedAt
from parallelrun.worker.plain import JsonText, Refused, bad_row, elements, to_utf8


class JsonRows:
    """Encodes elements. One per process."""

    def __init__(self, nan_as_null, run_location):
        self._json = JsonText(nan_as_null)
        self._run_location = run_location

    def encode(self, returned, origin=None):
        """The bytes of all elements, a line each. Raises Failure for what JSON cannot say."""
        lines = self._lines(returned)
        if origin is not None:
            lines = self._with_origin(list(lines), origin)
        return to_utf8("\n".join([*lines, ""]))

    def _lines(self, returned):
        row = 0
        try:
            for element in elements(returned):
                yield self._json.of(element)
                row += 1
        except Refused as refused:
            raise bad_row(row, "JSON", refused, self._run_location) from None

    def _with_origin(self, lines, origin):
        try:
            yield from origin.add_to_json(lines)
        except RefusedAt as refused:
            raise bad_row(refused.row, "written", refused, self._run_location) from None

"""Where the fields of delimited text begin, told from its bytes at once, of plain rows."""

_LINE_END = ord("\n")


def starts(data, delimiter, width, rows, quote):
    """The bytes, where the fields begin in them, row by row, and whether some are quoted.

    `quote` is its byte, None where there is none. None where they are not plainly `rows` rows of
    `width` fields each, as with short rows, or with text behind a closing quote, which belongs to
    the field.
    """
    import numpy as np

    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
        if b"\r" in data:
            return None
    if not data.endswith(b"\n"):
        data += b"\n"
    bytes_ = np.frombuffer(data + b"\0\0\0", np.uint8)
    ends = (bytes_ == delimiter) | (bytes_ == _LINE_END)
    quoted = quote is not None and bytes([quote]) in data
    if quoted:
        quotes = bytes_ == quote
        within = np.bitwise_xor.accumulate(quotes.view(np.uint8)).view(bool)
        behind = np.flatnonzero(quotes & ~within) + 1
        if not (ends | quotes)[behind].all():
            return None
        ends &= ~within
    ends = np.flatnonzero(ends)
    lines = bytes_[ends] == _LINE_END
    if len(ends) != width * rows or lines.sum() != rows or not lines[width - 1 :: width].all():
        return None
    return bytes_, np.concatenate(([0], ends[:-1] + 1)).reshape(rows, width), quoted


def end_empty(data, delimiter, width, rows, quote):
    """Whether they are plainly such rows, and nothing stands in the last field of each."""
    found = starts(data, delimiter, width, rows, quote)
    if found is None:
        return False
    bytes_, begins, _ = found
    return bool((bytes_[begins[:, -1]] == _LINE_END).all())

"""Leading zeros and plus signs of numbers, looked for in the bytes: pandas swallows them."""

_QUOTE, _PLUS, _MINUS, _ZERO, _NINE, _BLANK, _LINE_END = b'"+-09 \n'


def suspects(data, delimiter, width, rows, want):
    """Those of the columns `want` that may hold one, by their place in the file.

    None where the bytes are not plainly `rows` rows of `width` fields each, as with short rows.
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
    quoted = b'"' in data
    if quoted:
        ends &= ~np.bitwise_xor.accumulate((bytes_ == _QUOTE).view(np.uint8)).view(bool)
    ends = np.flatnonzero(ends)
    lines = bytes_[ends] == _LINE_END
    if len(ends) != width * rows or lines.sum() != rows or not lines[width - 1 :: width].all():
        return None
    starts = np.concatenate(([0], ends[:-1] + 1)).reshape(rows, width)
    found = []
    for i in want:
        at = starts[:, i]
        empty = bytes_[at] == _LINE_END  # the last field of its row, and nothing in it
        if quoted:
            at = at + (bytes_[at] == _QUOTE)
        first = bytes_[at]
        blank = (first == _BLANK) | ((first >= 9) & (first <= 13))
        if ((first == _PLUS) | (blank & (first != delimiter) & ~empty)).any():
            found.append(i)  # a plus, or blanks in front of anything
            continue
        at = at + (first == _MINUS)
        second = bytes_[at[bytes_[at] == _ZERO] + 1]
        if ((second >= _ZERO) & (second <= _NINE)).any():
            found.append(i)
    return found

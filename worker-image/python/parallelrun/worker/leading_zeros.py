"""Leading zeros and plus signs of numbers, looked for in the bytes: pandas swallows them."""

from parallelrun.worker import plain_rows

_PLUS, _MINUS, _ZERO, _NINE, _BLANK, _LINE_END = b"+-09 \n"


def suspects(data, delimiter, width, rows, want, quote):
    """Those of the columns `want` that may hold one, by their place in the file.

    None where the bytes are not plainly `rows` rows of `width` fields each.
    """
    plain = plain_rows.starts(data, delimiter, width, rows, quote)
    if plain is None:
        return None
    bytes_, starts, quoted = plain
    found = []
    for i in want:
        at = starts[:, i]
        empty = (bytes_[at] == _LINE_END) | (bytes_[at] == delimiter)  # also where that is a blank
        if quoted:
            at = at + (bytes_[at] == quote)
        first = bytes_[at]
        blank = (first == _BLANK) | ((first >= 9) & (first <= 13))
        if (((first == _PLUS) | blank) & ~empty).any():
            found.append(i)  # a plus, or blanks in front of anything
            continue
        at = at + (first == _MINUS)
        second = bytes_[at[bytes_[at] == _ZERO] + 1]
        if ((second >= _ZERO) & (second <= _NINE)).any():
            found.append(i)
    return found

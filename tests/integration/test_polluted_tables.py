"""One file of each kind of damage that tables come with: read as it stands, or refused by name."""

import pytest

REFUSED = 2

READ = {
    "plain": (b"a,b\n1,x\n", "a\tinteger\nb\ttext\n"),
    "a byte order mark": (b"\xef\xbb\xbfa,b\n1,x\n", "a\tinteger\nb\ttext\n"),
    "line ends of Windows": (b"a,b\r\n1,x\r\n", "a\tinteger\nb\ttext\n"),
    "line ends of old Macs": (b"a,b\r1,x\r2,y\r", "a\tinteger\nb\ttext\n"),
    "no line end at the end": (b"a,b\n1,x", "a\tinteger\nb\ttext\n"),
    "blank lines": (b"\n\na,b\n\n1,x\n  \n2,y\n\n", "a\tinteger\nb\ttext\n"),
    "line ends in quotes": (b'a,b\n1,"x\n\ny"\n', "a\tinteger\nb\ttext\n"),
    "quotes in quotes": (b'a,b\n1,"say ""x"""\n', "a\tinteger\nb\ttext\n"),
    "a quote within a field": (b'a,b\n1,5" disk\n', "a\tinteger\nb\ttext\n"),
    "short rows": (b"a,b\n1,x\n2\n", "1 of the 2 rows read has fewer fields than the header"),
    "a delimiter at the end of each row": (b"a,b\n1,x,\n2,y,\n", "a\tinteger\nb\ttext\n"),
    "a delimiter at the end of each line": (b"a,b,\n1,x,\n", "Unnamed: 2\tnumber"),
    "two columns of one name": (b"a,a\n1,x\n", "a\tinteger\na.1\ttext\n"),
    "a column without a name": (b"a,\n1,x\n", "a\tinteger\nUnnamed: 1\ttext\n"),
    "another delimiter": (b"a;b\n1;x\n", 'write delimiter: ";"'),
    "a delimiter of two characters": (b"a||b\n1||x\n", 'write delimiter: "||"'),
    "tabs": (b"a\tb\n1\tx\n", 'write delimiter: "\\t"'),
    "a line that names the delimiter": (
        b"sep=;\na;b\n1;x\n",
        'write delimiter: ";" and skipRows: 1',
    ),
    "no header": (b"1,2.5\n2,3.5\n", "set tabular.header to None"),
}

NOT_READ = {
    "a row with a field too many": (b"a,b\n1,x\n2,y,z\n", "t.csv:3: the row has 3 fields"),
    "a row with an empty field too many": (b"a,b\n1,x\n2,y,\n", "t.csv:3: the row has 3 fields"),
    "a delimiter at the end of most rows": (
        b"a,b\n1,x,\n2,y,\n3,z\n4,z,\n",
        "t.csv:4: the row has 2 fields, and the table 2 columns and a delimiter behind them",
    ),
    "a delimiter at the end of the first row alone": (
        b"a,b\n1,x,\n2,y\n3,z\n",
        "t.csv:2: the row has 3 fields, and the table 2 columns",
    ),
    "rows that begin with names": (b"a,b\nr1,1,x\nr2,2,y\n", "t.csv:2: the row has 3 fields"),
    "a table behind a table": (b"a,b\n1,x\n\nc,d,e\n1,2,3\n", "t.csv:4: the row has 3 fields"),
    "an open quote": (b'a,b\n1,"x\n2,y\n', "t.csv:2: the quote that this field begins with is"),
    "a NUL byte": (b"a,b\n1,x\0y\n", "t.csv:2: the row has a NUL byte"),
    "a NUL byte in the header": (b"a,b\0\n1,x\n", "its header holds a NUL byte"),
    "Latin-1": (b"a,b\n1,caf\xe9\n", "encoding: latin-1"),
    "Latin-1 in the header": (b"a,caf\xe9\n1,x\n", "encoding: latin-1"),
    "UTF-16": ("a,b\n1,x\n".encode("utf-16"), "iconv -f utf-16 -t utf-8"),
    "UTF-16 without a mark": ("a,b\n1,x\n".encode("utf-16-le"), "iconv -f utf-16le -t utf-8"),
    "a spreadsheet": (b"PK\x03\x04rest\n", "is compressed (zip, as .xlsx is)"),
    "nothing": (b"", "has no table of CSV or TSV with a row in it"),
}


@pytest.mark.parametrize("kind", READ)
def test_tables_that_are_read(kind, work):
    content, said = READ[kind]
    (work.root / "t.csv").write_bytes(content)
    result = work.call("types", work.root / "t.csv")
    assert result.code == 0, result
    assert said in result.output


@pytest.mark.parametrize("kind", NOT_READ)
def test_tables_that_are_refused(kind, work):
    content, said = NOT_READ[kind]
    (work.root / "t.csv").write_bytes(content)
    result = work.call("types", work.root / "t.csv")
    assert result.code == REFUSED, result
    assert said in result.output, result

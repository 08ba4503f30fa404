"""Side files that count with the run() that wrote them: `output.sideFiles: Staged`."""

import hashlib
import json
import os
import struct
import textwrap

import pytest
from fake_agent import SIDE_FILES, SIDE_FILES_SENT, frame
from parallelrun.worker import side_files

STAGING = "staged/process000-00c0ffee00c0ffee"


@pytest.fixture
def staged(launch):
    """staged(body of run(), above="") -> a FakeAgent; the script has `out`, its output folder."""

    def start(run, above="", **options):
        script = "import os\n\nfrom parallelrun.worker import process\n\n"
        script += "out = process.current.output_folder\n" + textwrap.dedent(above)
        script += "\n\ndef run(mini_batch):\n" + textwrap.indent(textwrap.dedent(run), "    ")
        folder = launch.folder / STAGING
        options = {"outputFolder": str(folder / "out"), "staging": str(folder), **options}
        return launch("own.py", files={"own.py": script + "\n    return ['row']\n"}, **options)

    return start


def listed(result):
    """The list in front of the rows, and the rows."""
    line, _, rows = result.data.partition(b"\n")
    return json.loads(line), rows


def digest(data):
    return hashlib.sha256(data).hexdigest()


def test_a_result_names_the_files_of_its_attempt(staged, launch):
    agent = staged(
        """
        for name in ("b.txt", "models/a.txt"):
            with open(os.path.join(out, name), "w") as file:
                file.write(name + mini_batch[0])
        """,
        outputFolders=["models", "empty/deep"],
    )
    agent.ready()
    agent.run_files(["x"], sequence=7)
    wrote, rows = listed(agent.result())
    assert wrote == {
        "folder": "process000-00c0ffee00c0ffee/7",
        "files": [
            ["b.txt", 10, digest(b"b.txt/in/x")],
            ["models/a.txt", 17, digest(b"models/a.txt/in/x")],
        ],
    }
    assert rows == b"row\n"
    folder = launch.folder / "staged" / wrote["folder"]
    assert (folder / "models" / "a.txt").read_text() == "models/a.txt/in/x"
    assert not (folder / "empty").exists()
    # Folders stay for the next mini-batch; files do not.
    out = launch.folder / STAGING / "out"
    assert sorted(os.listdir(out)) == ["empty", "models"]
    assert os.listdir(out / "models") == []
    agent.run_files(["y"], sequence=9)
    assert listed(agent.result())[0]["folder"] == "process000-00c0ffee00c0ffee/9"
    assert (folder / "b.txt").read_text() == "b.txt/in/x"
    assert agent.stop() == (None, 0)


@pytest.mark.parametrize("action", ["AppendRow", "SummaryOnly"])
def test_a_result_without_files_says_so(staged, action):
    agent = staged("pass", outputAction=action)
    agent.ready()
    agent.run_files()
    result = agent.result()
    assert listed(result) == ({}, b"" if action == "SummaryOnly" else b"row\n")
    assert result.rows == 1


def test_what_a_failed_attempt_wrote_is_removed(staged, launch):
    agent = staged(
        """
        if mini_batch[0] == "/in/bad":
            os.symlink("/", os.path.join(out, "link"))
            open(os.path.join(out, "half"), "w").close()
            raise ValueError("bad")
        """
    )
    agent.ready()
    agent.run_files(["bad"])
    assert agent.failed().failure["type"] == "ValueError"
    assert os.listdir(launch.folder / STAGING / "out") == []
    agent.run_files(["good"], sequence=2)
    assert listed(agent.result())[0] == {}


LONG = 4 * ("/" + 255 * "y")  # a folder of 1,023 bytes

BAD = {
    "open": ("held.append(open(os.path.join(out, 'x'), 'w'))", '"x" was still open for writing'),
    "link": ("os.symlink('/', os.path.join(out, 'x'))", '"x" is a link, or no file at all'),
    "pipe": ("os.mkfifo(os.path.join(out, 'x'))", '"x" is a link, or no file at all'),
    "bytes": ("open(os.path.join(os.fsencode(out), b'\\xff'), 'w').close()", "is not UTF-8"),
    "long": (
        "os.makedirs(out + LONG); open(out + LONG + '/xx', 'w').close()",
        "a name has at most 1024 bytes",
    ),
    "output": ("open(os.path.join(out, 'rows.txt'), 'w').close()", "the job itself uses rows.txt"),
    "own": ("open(os.path.join(out, '.parallelrun-x'), 'w').close()", "the job itself uses"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_count_fails_the_attempt(staged, launch, case):
    run, words = BAD[case]
    agent = staged(
        f"if mini_batch[0] == '/in/bad':\n    {run}",
        above=f"held = []\nLONG = {LONG!r}",
        reservedNames=["rows.txt"],
    )
    agent.ready()
    agent.run_files(["bad"])
    failure = agent.failed().failure
    assert failure["kind"] == "BadSideFile"
    assert words in failure["message"]
    # Nothing of it reaches the next one, which is what it is without it.
    agent.run_files(["good"], sequence=2)
    assert listed(agent.result())[0] == {}


def test_a_file_that_is_only_read_may_stay_open(staged):
    agent = staged(
        """
        with open(os.path.join(out, "x"), "w") as file:
            file.write("1")
        held.append(open(os.path.join(out, "x")))
        """,
        above="held = []",
    )
    agent.ready()
    agent.run_files()
    assert listed(agent.result())[0]["files"] == [["x", 1, digest(b"1")]]


def test_a_file_that_nobody_may_write_counts_too(staged):
    agent = staged(
        """
        with open(os.path.join(out, "x"), "w") as file:
            file.write("1")
        os.chmod(os.path.join(out, "x"), 0o400)
        """
    )
    agent.ready()
    agent.run_files()
    assert listed(agent.result())[0]["files"] == [["x", 1, digest(b"1")]]


def test_the_list_is_bounded(staged):
    agent = staged(
        f"for i in range({side_files.MAX_FILES} + 1):\n"
        "    open(os.path.join(out, str(i)), 'w').close()"
    )
    agent.ready()
    agent.run_files()
    assert "wrote 10001 files; at most 10000" in agent.failed().failure["message"]


def test_files_of_init_end_the_process(staged):
    agent = staged(
        "pass", above='def init():\n    open(os.path.join(out, "config"), "w").close()\n'
    )
    failure = agent.init_failure()
    assert failure["kind"] == "InitFailed" and failure["fatal"]
    assert 'init() wrote "config" into the output folder' in failure["message"]


def test_files_of_shutdown_are_told(staged):
    agent = staged(
        "pass",
        above="""
        def shutdown():
            for name in ("sum", "all"):
                open(os.path.join(out, name), "w").close()
        """,
    )
    agent.ready()
    agent.run_files()
    agent.result()
    failure, status = agent.stop()
    assert status == 0
    assert 'shutdown() wrote "all" and 1 more into the output folder' in failure["message"]


def test_without_staging_nothing_stands_in_front(launch):
    agent = launch("returns.py", "['row']")
    agent.ready()
    agent.run_files()
    assert agent.result().data == b"row\n"


def test_a_folder_named_outputs_is_explained(staged):
    agent = staged("open('outputs/a.txt', 'w')")
    agent.ready()
    agent.run_files()
    assert (
        "With output.sideFiles: Staged there is no ./outputs" in agent.failed().failure["message"]
    )


def test_an_output_folder_that_cannot_be_made_is_said(staged, launch):
    launch.write("staged", "a file")
    failure = staged("pass").init_failure()
    assert failure["kind"] == "InitFailed"
    assert failure["type"] in ("NotADirectoryError", "FileExistsError")


WRITES = """
with open(os.path.join(out, "a.txt"), "w") as file:
    file.write("text")
"""


def asked(agent):
    """(sequence, list) of what the process wants to have sent."""
    body = agent.expect(SIDE_FILES)
    (sequence,) = struct.unpack_from("<Q", body)
    return sequence, json.loads(body[8:])


def test_where_the_output_is_in_a_store_the_agent_sends_the_files(staged, launch):
    agent = staged(WRITES, sendsSideFiles=True)
    agent.ready()
    agent.run_files(["x"], sequence=7)
    sequence, wrote = asked(agent)
    assert (sequence, wrote) == (
        7,
        {"folder": "process000-00c0ffee00c0ffee/7", "files": [["a.txt", 4, digest(b"text")]]},
    )
    folder = launch.folder / "staged" / wrote["folder"]
    assert (folder / "a.txt").read_text() == "text"
    before = agent.entered()
    agent.send(frame(SIDE_FILES_SENT, b"\0"))
    agent.send(frame(SIDE_FILES_SENT, b'\1{"with":"uploads"}'))
    assert listed(agent.result()) == ({"with": "uploads"}, b"row\n")
    assert agent.entered() > before, "it was told that it goes on"
    assert not folder.exists()
    # A mini-batch without files asks for nothing.
    agent = staged("pass", sendsSideFiles=True)
    agent.ready()
    agent.run_files()
    assert listed(agent.result())[0] == {}


def test_files_that_could_not_be_sent_fail_the_attempt(staged, launch):
    agent = staged(WRITES, sendsSideFiles=True)
    agent.ready()
    agent.run_files()
    asked(agent)
    agent.send(frame(SIDE_FILES_SENT, b"\2the store is full"))
    failure = agent.failed().failure
    assert failure["kind"] == "BadSideFile"
    assert failure["message"] == "the store is full"
    assert os.listdir(launch.folder / STAGING) == ["out"]
    agent.run_files(sequence=2)
    asked(agent)
    agent.send(frame(SIDE_FILES_SENT, b"\1{}"))
    assert listed(agent.result())[0] == {}


def test_what_a_process_of_before_has_left_on_the_node_goes(staged, launch):
    launch.write("staged/process000-1/5/half", "x")
    launch.write("staged/process001-1/5/half", "of another")
    agent = staged("pass", sendsSideFiles=True)
    agent.ready()
    assert sorted(os.listdir(launch.folder / "staged")) == [
        os.path.basename(STAGING),
        "process001-1",
    ]

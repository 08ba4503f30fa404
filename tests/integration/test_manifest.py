"""Inputs whose items a manifest names."""

import json

import pytest


def named(work, lines, **fields):
    """A job over the files of a folder that a manifest names, one in each mini-batch."""
    (work.data / "lists").mkdir(exist_ok=True)
    (work.data / "photos").mkdir(exist_ok=True)
    (work.data / "lists" / "today.txt").write_text("".join(f"{line}\n" for line in lines))
    work.job(
        inputs=[
            {
                "name": "files",
                "files": {"volume": "data", "path": "photos"},
                "manifest": {"path": "lists/today.txt"},
            }
        ],
        **fields,
    )


def photos(work, *names):
    for name in names:
        path = work.data / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"photo {name}")


def test_items_are_its_lines_in_their_order(work):
    work.script()
    photos(work, "a", "b/c", "z", ".hidden", "not named")
    named(work, ["z", "", "./b/c", ".hidden", "a"])
    result = work.run()
    assert result.code == 0, result
    assert "4 input files" in result.output, result
    assert work.rows() == ["photo z", "photo b/c", "photo .hidden", "photo a"]


def test_what_is_not_there_fails_alone_and_is_tried_again(work):
    work.script()
    photos(work, "a", "b")
    named(work, ["b", "late", "a"], runMaxTry=1, isolateFailures=True)
    result = work.run()
    assert result.code == 3, result
    assert work.rows() == ["photo b", "photo a"]
    (letter,) = map(json.loads, work.log_text("dead-letter.jsonl").splitlines())
    assert letter["path"] == str(work.data / "photos" / "late")
    assert "No such file or directory" in letter["message"]
    photos(work, "late")
    result = work.run("--retry-failed")
    assert result.code == 0, result
    assert work.rows() == ["photo b", "photo late", "photo a"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("../lists/today.txt", "leaves the folder of the input"),
        ("/etc/passwd", "is an absolute path"),
        ("file:///etc/passwd", "is a URL"),
        ("a", "stands in line 1 too"),
    ],
)
def test_what_it_may_not_name_is_refused_before_the_start(work, line, why):
    work.script()
    photos(work, "a")
    named(work, ["a", line])
    for result in (work.run(), work.call("validate", work.job_file.name)):
        assert result.code == 2, result
        assert f'today.txt:2: "{line}" {why}' in result.output, result
    assert work.noted("calls") == []


def test_a_file_in_two_lines_is_run_for_each_where_that_is_meant(work):
    work.script(
        "def run(mini_batch, context):\n"
        "    (path,), (said,) = mini_batch, context.item_metadata\n"
        "    return [f\"{open(path).read()} {said['question']}\"]\n"
    )
    photos(work, "a", "b")
    lines = ["path,question", "a,who", "b,who", "a,where"]
    named(work, lines)
    words = ["--set", "spec.inputs[0].manifest.format=CSV"]
    result = work.run(*words)
    assert result.code == 2, result
    assert 'today.txt:4: "a" stands in line 2 too' in result.output, result
    assert "duplicates: Keep" in result.output, result
    result = work.run(*words, "--set", "spec.inputs[0].manifest.duplicates=Keep")
    assert result.code == 0, result
    assert work.rows() == ["photo a who", "photo b who", "photo a where"]


def test_another_one_is_another_run(work):
    work.script(
        "from steps import there\n"
        "\n"
        "def run(mini_batch):\n"
        "    assert there('mended') or not mini_batch[0].endswith('b')\n"
        "    return [open(path).read() for path in mini_batch]\n"
    )
    photos(work, "a", "b", "c")
    named(work, ["c", "b", "a"], runMaxTry=1, errorThreshold=0, processCountPerNode=1)
    result = work.run()
    assert result.code == 1, result
    manifest = work.data / "lists" / "today.txt"
    aside = manifest.rename(work.root / "aside")
    manifest.write_text("c\nb\n")
    result = work.run("--resume")
    assert result.code == 2, result
    assert f"\n  inputs[files]: {manifest} had 6 bytes, has 4\n" in result.output, result
    aside.rename(manifest)
    work.make("mended")
    result = work.run("--resume")
    assert result.code == 0, result
    assert work.rows() == ["photo c", "photo b", "photo a"]


def test_columns_of_a_line_reach_the_script(work):
    """Of an item that is tried alone, too: a piece is described by its own line."""
    work.script(
        "import os\n"
        "from steps import there\n"
        "\n"
        "def run(mini_batch, context):\n"
        "    rows = []\n"
        "    for path, said in zip(mini_batch, context.item_metadata):\n"
        "        if said['label'] == 'bad' and not there('mended'):\n"
        "            raise ValueError('a bad label')\n"
        "        rows.append(f\"{os.path.basename(path)} {said['label']} {said['id']}\")\n"
        "    return rows\n"
    )
    photos(work, "a", "b", "c")
    named(work, ["id,file,label", "1,c,cat", '02,b,"a, dog"', "3,a,bad"])
    manifest = {"path": "lists/today.txt", "format": "CSV", "column": "file"}
    job = json.loads(work.job_file.read_text())
    job["spec"]["inputs"][0]["manifest"] = manifest
    job["spec"].update(miniBatchSize="3", runMaxTry=1, isolateFailures=True)
    work.job_file.write_text(json.dumps(job))
    result = work.run()
    assert result.code == 3, result
    assert work.rows() == ["c cat 1", "b a, dog 02"]
    debugged = work.call("debug", "out", "--item", "a")
    assert "ValueError: a bad label" in debugged.output, debugged
    work.make("mended")
    result = work.run("--retry-failed")
    assert result.code == 0, result
    assert work.rows() == ["c cat 1", "b a, dog 02", "a bad 3"]


def test_a_file_of_another_size_than_it_says_fails_alone(work):
    work.script()
    photos(work, "a", "b", "c")
    named(work, ["path,size", "c,7", "b,8", "a,"], runMaxTry=1, isolateFailures=True)
    job = json.loads(work.job_file.read_text())
    job["spec"]["inputs"][0]["manifest"].update(format="CSV", sizeColumn="size")
    work.job_file.write_text(json.dumps(job))
    result = work.run()
    assert result.code == 3, result
    assert work.rows() == ["photo c", "photo a"]
    (letter,) = map(json.loads, work.log_text("dead-letter.jsonl").splitlines())
    assert letter["path"] == str(work.data / "photos" / "b")
    assert "is not what was listed: it has 7 bytes" in letter["message"], letter
    assert "and had 8 bytes" in letter["message"], letter
    named(work, ["path,size", "c,7", "b,8 bytes"])
    work.job_file.write_text(json.dumps(job))
    result = work.run("--overwrite")
    assert result.code == 2, result
    assert 'today.txt:3: "8 bytes" is no size' in result.output, result


def test_objects_reach_the_script_and_a_text_says_nothing(work):
    work.script(
        "def run(mini_batch, context):\n    return [str(context.item_metadata)] * len(mini_batch)\n"
    )
    photos(work, "a")
    named(work, ['{"path": "a", "of": [1, null], "id": 12345678901234567890123}'])
    words = ["--set", "spec.inputs[0].manifest.format=JSONLines"]
    result = work.run(*words)
    assert result.code == 0, result
    assert work.rows() == ["[{'path': 'a', 'of': [1, None], 'id': 12345678901234567890123}]"]
    named(work, ["a"])
    result = work.run("--overwrite")
    assert result.code == 0, result
    assert work.rows() == ["None"]

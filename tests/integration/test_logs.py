"""What a script writes: stdout, stderr, its logger, files in ./logs and ./outputs."""


def test_where_the_words_of_a_script_go(work):
    work.files(20)
    work.script(
        "import logging, os, sys\n"
        "from pathlib import Path\n"
        "from azureml_user.parallel_run import EntryScript\n\n"
        "def init():\n"
        "    print('printed in init')\n"
        "    EntryScript().logger.info('logged by %s', EntryScript().agent_name)\n"
        "    EntryScript().logger.debug('not at INFO')\n"
        "    own = Path(EntryScript().log_dir)\n"
        "    own.mkdir(parents=True, exist_ok=True)\n"
        "    (own / f'{EntryScript().agent_name} own.txt').write_text('a file of its own')\n\n"
        "def run(mini_batch):\n"
        "    print('printed', len(mini_batch), '\\N{SNOWMAN}')\n"
        "    print('to stderr', file=sys.stderr)\n"
        "    logging.info('by the root logger')\n"
        "    Path('logs/notes').mkdir(parents=True, exist_ok=True)\n"
        "    Path('logs/notes/one.txt').write_text('put into logs')\n"
        "    Path('outputs').joinpath('side.txt').write_text('put into outputs')\n"
        "    Path('scratch.txt').write_text('the working folder is writable')\n"
        "    return mini_batch\n\n"
        "def shutdown():\n"
        "    print('printed in shutdown')\n"
    )
    work.job(processCountPerNode=1)
    result = work.run()
    assert result.code == 0, result
    out = (work.logs / "user/stdout/0/process000.stdout.txt").read_text()
    assert out.startswith("printed in init\n")
    assert out.count("printed 1 \N{SNOWMAN}\n") == 20
    assert out.count("by the root logger") == 20
    assert out.endswith("printed in shutdown\n")
    err = (work.logs / "user/stderr/0/process000.stderr.txt").read_text()
    assert err == "to stderr\n" * 20
    logged = (work.logs / "user/entry_script_log/0/process000.log.txt").read_text()
    assert "logged by process000" in logged
    assert "not at INFO" not in logged
    own = work.logs / "user/entry_script_log/0/process000 own.txt"
    assert own.read_text() == "a file of its own"
    notes = list(work.logs.rglob("one.txt"))
    assert [path.read_text() for path in notes] == ["put into logs"]
    assert (work.output.parent / "side.txt").read_text() == "put into outputs"
    assert not (work.code / "scratch.txt").exists()


def test_much_text_arrives_whole(work):
    work.files(10)
    work.script("def run(b):\n    print('x' * 1_000_000)\n    return b\n")
    work.job(processCountPerNode=1)
    result = work.run()
    assert result.code == 0, result
    out = (work.logs / "user/stdout/0/process000.stdout.txt").read_text()
    assert out == ("x" * 1_000_000 + "\n") * 10


def test_logs_of_a_process_that_is_killed(work):
    """Its last words are what one needs most."""
    work.files(3)
    work.script("import os\n\ndef run(b):\n    print('last words', flush=True)\n    os._exit(9)\n")
    work.job(processCountPerNode=1, runMaxTry=1)
    result = work.run()
    assert result.code == 1, result
    assert work.log_text("user/stdout/0/*.txt").count("last words\n") == 3


def test_logs_of_each_node_are_its_own(work):
    work.files(40)
    work.script(
        "from azureml_user.parallel_run import EntryScript\n"
        "from steps import note, wait_for\n\n"
        "def init():\n    print('I am', EntryScript().agent_name)\n    note('there', 1)\n\n"
        "def run(b):\n    wait_for('go')\n    return b\n"
    )
    work.job(processCountPerNode=1)
    command = work.start_job("--nodes", "3")
    command.wait_for(lambda: len(work.noted("there")) == 3, "each node has its process")
    work.make("go")
    result = command.wait()
    assert result.code == 0, result
    folders = sorted(path.name for path in (work.logs / "user/stdout").iterdir())
    assert folders == ["0", "1", "2"]
    for folder in folders:
        assert work.log_text(f"user/stdout/{folder}/*.txt").count("I am process") == 1

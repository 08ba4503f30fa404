"""Entry scripts that can never run: the job ends at once, and says why."""

import pytest
from support.refusal import expect_refusal


def refused(work, script, *words, code=1):
    """With 1 a worker has found it out; with 2 nothing was started."""
    work.files(5)
    work.script(script)
    work.job()
    result = work.run()
    expect_refusal(work, result, *words, code=code)
    assert work.out.exists() == (code == 1)
    return result


def test_missing_script(work):
    work.files(5)
    work.script(name="scorer.py")
    work.job()
    result = work.run()
    expect_refusal(
        work, result, "score.py is not in the code folder", "scorer.py", "--code", code=2
    )
    assert not work.out.exists()


def test_syntax_error(work):
    script = "def init():\n    pass\n\ndef run(mini_batch)\n    return []\n"
    refused(work, script, "score.py:4: ", "SyntaxError", "Fix the script", code=2)


def test_no_run(work):
    script = "def init():\n    pass\n"
    refused(work, script, "there is no function run()", "score.py", "Define", code=2)


def test_no_run_once_it_is_imported(work):
    script = "def run(b): return b\n\ndel run\n"
    refused(work, script, "there is no function run()", "score.py", "Define")


def test_run_without_parameter(work):
    refused(
        work, "\ndef run():\n    return []\n", "run() takes no positional argument", "score.py:2"
    )


def test_init_raises(work):
    script = "def init():\n    raise ValueError('no model in the cellar')\n\ndef run(b): return b\n"
    refused(work, script, "no model in the cellar", "ValueError", "score.py:2", "user/error/0/")
    assert "in init\n" in work.log_text("user/error/0/*.txt")  # the user's traceback is in the log


def test_init_ends_the_process(work):
    script = "import os\n\ndef init():\n    os._exit(7)\n\ndef run(b): return b\n"
    refused(work, script, "exited with status 7", "init()")


def test_import_of_a_missing_module(work):
    script = "import not_installed_here\n\ndef run(b): return b\n"
    words = ["No module named 'not_installed_here'", "score.py:1", "Install it: "]
    refused(work, script, *words, "-m pip install not_installed_here", code=2)


def test_import_of_a_missing_module_in_a_function(work):
    script = "def init():\n    import not_installed_here\n\ndef run(b): return b\n"
    refused(work, script, "No module named 'not_installed_here'", "score.py:2", "Install it")


def test_argparse_that_does_not_know_an_argument(work):
    work.files(5)
    work.script(
        "import argparse\n\ndef init():\n    argparse.ArgumentParser().parse_args()\n\n"
        "def run(b): return b\n"
    )
    work.job(arguments=["--color", "red"])
    expect_refusal(work, work.run(), "use parse_known_args()", "score.py:4", code=1)


@pytest.mark.parametrize("flags", [[], ["--resume"]])
def test_a_corrected_script_needs_no_flag(work, flags):
    """Nothing had succeeded: there is nothing to keep."""
    refused(work, "def run(b): return b\n\nraise ValueError('not yet')\n", "score.py:3")
    work.script("def run(b): return [open(path).read() for path in b]\n")
    result = work.run(*flags)
    assert result.code == 0, result
    assert work.rows() == [f"row {index}" for index in range(5)]


def test_missing_interpreter(work):
    work.files(5)
    work.script()
    work.job(environment={"python": "/no/such/python"})
    expect_refusal(work, work.run(), "/no/such/python", "No such file or directory")

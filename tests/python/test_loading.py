"""How the entry script is found, imported and called."""

import json
import sys

import pytest

NEEDED = ["parallelrun", "azureml_user", "types", "json", "struct", "socket", "mmap", "runpy"]


def describe(agent):
    agent.ready()
    agent.run_files(["a.png", "b c.png"], root="/in", index=7)
    return json.loads(agent.result().data.splitlines()[0])


def test_mini_batch_and_arguments(launch):
    agent = launch("describe.py", "--model", "m.pkl", "--names", "x", "y", "--other-flag", "1")
    seen = describe(agent)
    script = str(agent.code / "describe.py")
    assert seen == {
        "paths": ["/in/a.png", "/in/b c.png"],
        "repr": "['/in/a.png', '/in/b c.png']",
        "task_id": 7,
        "argv": [script, *agent.start["arguments"]],
        "model": "m.pkl",
        "names": ["x", "y"],
        "unknown": ["--other-flag", "1"],
        "file": script,
        "path0": str(agent.code),
        "main_thread": True,
        "imports": 1,
    }


@pytest.mark.parametrize("root", ["/", "/in/"])
def test_no_double_slash(launch, root):
    agent = launch("describe.py")
    agent.ready()
    agent.run_files(["a"], root=root)
    assert json.loads(agent.result().data)["paths"] == [root + "a"]


@pytest.mark.parametrize(
    ("script", "row"),
    [
        ("src/entry.py", "src.entry helper at the root None"),
        ("./src/entry.py", "src.entry helper at the root None"),
        ("src.entry", "src.entry helper at the root None"),
        ("batch_score.main", "batch_score.main relative import"),
        ("batch_score/main.py", "batch_score.main relative import"),
    ],
)
def test_nested_and_dotted(launch, script, row):
    agent = launch(script)
    agent.ready()
    agent.run_files()
    assert agent.result().data.decode() == row + "\n"


def test_nothing_in_the_code_folder_takes_the_place_of_what_a_worker_needs(launch):
    """Whatever the modules there are called: the script's own first import is where they count."""
    names = {*getattr(sys, "stdlib_module_names", NEEDED), *NEEDED}
    files = {f"{name}.py": f"raise RuntimeError('the user has a {name}')\n" for name in names}
    files["score.py"] = "def run(mini_batch):\n    return [len(mini_batch)]\n"
    files["start_worker.py"] = files["parallelrun.py"]
    agent = launch("score.py", files=files)
    agent.ready()
    agent.run_files(["a", "b"])
    assert agent.result().data == b"2\n"
    agent.stop()


NAMED = "def run(mini_batch):\n    return [__name__]\n"


@pytest.mark.parametrize(
    ("script", "row"),
    [
        ("my-script.py", "my-script"),
        ("step-1/score.py", "score"),
        ("v1.2.py", "entry_script_v1_2"),
        ("json.py", "entry_script_json"),
        ("time.py", "entry_script_time"),
        ("pack/__init__.py", "pack"),
        ("pack", "pack"),
    ],
)
def test_odd_names(launch, script, row):
    file = "pack/__init__.py" if script == "pack" else script
    agent = launch(script, files={file: NAMED})
    agent.ready()
    agent.run_files()
    assert agent.result().data.decode() == row + "\n"


def test_a_folder_of_the_same_name_does_not_win(launch):
    agent = launch("score.py", files={"score.py": NAMED, "score/__init__.py": "raise ValueError"})
    agent.ready()


def test_imported_once_when_its_package_imports_it(launch):
    files = {
        "pack/__init__.py": "from .main import run",
        "pack/main.py": "print('imported')\n" + NAMED,
    }
    agent = launch("pack.main", files=files)
    agent.ready()
    assert agent.stdout_path.read_text() == "imported\n"


def test_modules_of_the_code_do_not_break_the_worker(launch):
    # What the worker imports before the script comes from the standard library.
    agent = launch("describe.py", files={"struct.py": "raise ValueError", "mmap.py": "x"})
    agent.ready()


def test_life(launch):
    agent = launch("lifetime.py")
    assert agent.ready() > 0
    for sequence in (1, 2):
        agent.run_files(sequence=sequence)
        assert agent.result().data.decode() == "init" + " run" * sequence + "\n"
    assert agent.stop() == (None, 0)
    assert agent.stdout_path.read_text() == "init run run shutdown\n"


def context_of(agent, **work):
    agent.ready()
    agent.run_files(["a", "b"], **work)
    return json.loads(agent.result().data.splitlines()[0])


def test_context(launch):
    keys = {"user": "user1", "genres": "disco"}
    seen = context_of(launch("with_context.py"), index=3, retries=2, first=40, context=keys)
    assert seen == {
        "minibatch_index": 3,
        "retry_count": 2,
        "lower_bound": 40,
        "keys": keys,
        "dataset": "Subset(source='/in', first_item=40, items=2)",
        "absent": "default",
    }


def test_context_without_keys(launch):
    assert context_of(launch("with_context.py"))["keys"] == {}


PLAIN = """
def wrap(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper
def twice(function, other=lambda: 0):
    def wrapper(*args, **kwargs):
        other()
        return function(*args, **kwargs)
    return wrapper
"""
WRAPPER = """
import functools
def wrap(function):
    @functools.wraps(function)
    def wrapper({parameters}):
        return function({parameters})
    return wrapper
"""


@pytest.mark.parametrize(
    ("definition", "count"),
    [
        ("def run(m): return [1]", 1),
        ("def run(m, c): return [2]", 2),
        ("def run(m, c=None): return [1 if c is None else 2]", 2),
        ("def run(*args): return [len(args)]", 2),
        ("def run(m, **other): return [1 + len(other)]", 1),
        ("def run(m, *, flag=False): return [1]", 1),
        ("class S:\n  def run(self, m): return [1]\nrun = S().run", 1),
        ("class S:\n  def __call__(self, m, c): return [2]\nrun = S()", 2),
        ("import functools\nrun = functools.partial(lambda m, c: [2])", 2),
        (WRAPPER.format(parameters="*args") + "@wrap\ndef run(m): return [1]", 1),
        (WRAPPER.format(parameters="*args") + "@wrap\ndef run(m, c): return [2]", 2),
        (WRAPPER.format(parameters="m") + "@wrap\ndef run(m, c=1): return [c]", 1),
        (PLAIN + "@wrap\ndef run(m): return [1]", 1),
        (PLAIN + "@wrap\n@wrap\ndef run(m): return [1]", 1),
        (PLAIN + "@wrap\ndef run(m, c): return [2]", 2),
        (PLAIN + "@twice\ndef run(m, c): return [2]", 2),
    ],
)
def test_one_or_two_parameters(launch, definition, count):
    agent = launch("score.py", files={"score.py": definition})
    agent.ready()
    agent.run_files()
    assert agent.result().data.decode() == f"{count}\n"


@pytest.mark.parametrize(
    ("script", "content", "kind", "location", "message"),
    [
        ("gone.py", None, "ScriptMissing", "gone.py", "describe.py"),
        ("no.such.module", None, "ScriptMissing", "no.such.module", "entryScript"),
        ("../out.py", None, "ScriptMissing", "../out.py", "inside the code folder"),
        ("score.py", "x = 1\ndef run(:\n", "ScriptInvalid", "score.py:2", "score.py:2: "),
        ("score.py", "x = '\0'", "ScriptInvalid", "score.py:1", "null bytes"),
        ("score.py", "import other", "ScriptInvalid", "other.py:3", "other.py:3: "),
        ("score.py", "x = 1\n", "ScriptInvalid", "score.py:1", "Define run(mini_batch)"),
        ("score.py", "run = 1\n", "ScriptInvalid", "score.py:1", "Define run(mini_batch)"),
        ("score.py", "\ndef run(): pass", "ScriptInvalid", "score.py:2", "run(mini_batch)"),
        ("score.py", "\ndef run(a, b, c): pass", "ScriptInvalid", "score.py:2", "asks for c, and"),
        ("score.py", "def run(a, *, k): pass", "ScriptInvalid", "score.py:1", "asks for k, and"),
        (
            "score.py",
            "def run(a): pass\ndef init(model, x=1): pass",
            "ScriptInvalid",
            "score.py:2",
            "Define it as init()",
        ),
    ],
)
def test_fatal_load_errors(launch, script, content, kind, location, message):
    files = {"other.py": "\n\nx = = 1\n"}
    if content is not None:
        files[script] = content
    failure = launch(script, files=files).init_failure()
    assert (failure["kind"], failure["location"]) == (kind, location)
    assert failure["fatal"] is True
    assert message in failure["message"]


@pytest.mark.parametrize(
    ("where", "what", "type_", "message"),
    [
        ("import", "ValueError('bad')", "ValueError", "bad"),
        ("init", "ValueError('bad')", "ValueError", "bad"),
        ("init", "SystemExit(3)", "SystemExit", "sys.exit(3)"),
        ("init", "KeyboardInterrupt()", "KeyboardInterrupt", ""),
        ("import", "ModuleNotFoundError('No module named x')", "ModuleNotFoundError", "Install"),
    ],
)
def test_init_failures(launch, where, what, type_, message):
    agent = launch("failing.py", where, what)
    failure = agent.init_failure()
    assert (failure["kind"], failure["type"], failure["fatal"]) == ("InitFailed", type_, False)
    assert message in failure["message"]
    assert failure["location"] == "failing.py:10"
    assert failure["traceback"].startswith("Traceback")
    assert "parallelrun" not in failure["traceback"]
    assert failure["traceback"] in agent.log("user/error/0/process000.txt")


def test_more_parameters_with_defaults_are_no_mistake(launch):
    script = "def init(a=1, *b, c=2, **d): pass\ndef run(m, context, c=1, *d, e=2, **f): return m\n"
    launch("score.py", files={"score.py": script}).ready()


@pytest.mark.parametrize("beside", ["src/tools/sibling.py", "src/tools/sibling/part.py"])
def test_a_module_beside_a_script_in_a_folder_is_named(launch, beside):
    files = {"src/tools/score.py": "import sibling\n" + NAMED, beside: ""}
    failure = launch("src/tools/score.py", files=files).init_failure()
    assert "src/tools/sibling" in failure["message"]
    assert failure["message"].endswith("below it: import src.tools.sibling.")


def test_a_module_that_is_nowhere_is_to_be_installed(launch):
    files = {"src/score.py": "import no_such_module.part\n" + NAMED}
    failure = launch("src/score.py", files=files).init_failure()
    assert f"Install it: {sys.executable} " in failure["message"]
    assert failure["message"].endswith("A module of your own belongs into the code folder.")


def test_an_init_that_is_async_is_awaited(launch):
    """Called alone, its body would never run, and every mini-batch would miss what it loads."""
    files = {
        "score.py": "import asyncio\n\nloaded = []\n\n\nasync def init():\n"
        "    await asyncio.sleep(0)\n    loaded.append('model')\n"
        "\n\ndef run(mini_batch):\n    return loaded\n"
    }
    agent = launch("score.py", files=files)
    agent.ready()
    agent.run_files(["a"])
    assert agent.result().data == b"model\n"


def test_an_async_init_that_raises_fails(launch):
    files = {"score.py": "async def init():\n    1 / 0\n\n\ndef run(b):\n    return b\n"}
    failure = launch("score.py", files=files).init_failure()
    assert (failure["type"], failure["location"]) == ("ZeroDivisionError", "score.py:2")

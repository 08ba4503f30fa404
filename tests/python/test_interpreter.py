"""What the package asks of the interpreter: Python 3.8, its standard library, pandas for tables."""

import ast
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "worker-image" / "python"
SOURCES = sorted(PACKAGE.rglob("*.py"))
OWN = {"parallelrun", "azureml_user", "azureml", "mlflow"}

# What each file may import beyond the standard library and the package itself.
OTHERS = {
    "parallelrun/function_script.py": {"cloudpickle"},
    "parallelrun/output.py": {"pandas", "pyarrow"},
    "parallelrun/progress.py": {"IPython", "tqdm"},
    "parallelrun/worker/table.py": {"numpy", "pandas"},
    "parallelrun/worker/other_tables.py": {"pandas"},
    "parallelrun/worker/decompress.py": {"compression", "zstandard", "pyarrow"},
    "parallelrun/worker/plain_parquet.py": {"pyarrow"},
    "parallelrun/worker/plain_rows.py": {"numpy"},
    "parallelrun/worker/parquet_rows.py": {"pyarrow"},
    "parallelrun/worker/typed_parquet.py": {"pandas", "pyarrow"},
    "parallelrun/shims/mlmodel.py": {"yaml"},
    "parallelrun/shims/tree/azureml/core/dataset.py": {"pandas"},
    "parallelrun/shims/tree/mlflow/pyfunc/__init__.py": {"numpy"},
    "parallelrun/shims/tree/mlflow/sklearn.py": {"joblib", "cloudpickle"},
}


def imported(tree):
    """(package, whether the import stands at the top) of each absolute import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        else:
            continue
        for name in names:
            yield name.partition(".")[0], node.col_offset == 0


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_package_is_python_3_8_and_imports_only_what_it_says(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 8))
    others = {
        (name, at_top)
        for name, at_top in imported(tree)
        if name not in OWN and name not in sys.stdlib_module_names
    }
    allowed = OTHERS.get(path.relative_to(PACKAGE).as_posix(), set())
    assert {name for name, _ in others} == allowed
    # Only who needs them pays for them, and a script that does not runs without them.
    assert not any(at_top for _, at_top in others)


def test_no_module_of_the_package_imports_one_that_leads_back_to_it():
    graph = {}
    for path in sorted((PACKAGE / "parallelrun").rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        if name.startswith("parallelrun.shims.tree."):
            continue  # it stands in for other packages, under their names
        name = name.partition(".__init__")[0]
        used = graph.setdefault(name, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                used.update(one.name for one in node.names)
            elif isinstance(node, ast.ImportFrom):
                # A module by its package is asked of what stands in front of that.
                used.add(node.module)
                used.update(f"{node.module}.{one.name}" for one in node.names)
        used.discard(name)
    assert "parallelrun.worker.listed" in graph["parallelrun.worker.table"]
    assert "parallelrun.job" in graph["parallelrun"]
    while graph:
        last = {name for name, used in graph.items() if not used & graph.keys()}
        assert last, f"a circle: {graph}"
        for name in last:
            del graph[name]


def test_an_old_interpreter_names_itself_and_the_mend():
    script = "import sys; sys.version_info = (3, 6, 9)\n"
    script += "import start_worker; sys.exit(start_worker.start())"
    ours, theirs = os.pipe()
    words = [sys.executable, "-c", f"import os; os.dup2({theirs}, 3); {script}"]
    environment = {"PYTHONPATH": str(PACKAGE), "PATH": os.environ["PATH"]}
    done = subprocess.run(words, env=environment, pass_fds=[theirs], timeout=30)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        frame = pipe.read()
    size, kind = struct.unpack_from("<IB", frame)
    failure = json.loads(frame[5:])
    assert (done.returncode, size, kind) == (1, len(frame) - 5, 17)
    assert failure["fatal"] is True
    assert "Python 3.6" in failure["message"]
    assert "spec.environment.python" in failure["message"]

"""Who gets which mini-batch: slow ones do not hold up the others."""

# Mini-batch 150 does not return until the test says so, nor does any other one on its node.
SCRIPT = """
import time
from azureml_user.parallel_run import EntryScript
from steps import note, there, wait_for

def run(mini_batch, context):
    index = context.minibatch_index
    node = EntryScript().log_dir.rstrip("/")[-1:]
    time.sleep(0.002)
    if index == 150 and not there("slow"):  # tried a second time, on the other node, it is quick
        note("slow", index)
        note("slow " + node, index)
    if there("slow " + node):
        wait_for("go")
    note("returned", index)
    return [f"row {index}"]
"""


def test_an_idle_node_gets_what_waits_behind_slow_mini_batches(work):
    work.files(300)
    work.script(SCRIPT)
    work.job()
    command = work.start_job("--nodes", "2")
    # Also what was sent ahead to the two processes that are stuck.
    command.wait_for(lambda: len(work.noted("returned")) >= 298, "the other node does the rest")
    work.make("go")
    result = command.wait()
    assert result.code == 0, result
    assert work.rows() == [f"row {index}" for index in range(300)]


def test_all_processes_and_nodes_take_part(work):
    work.files(200)
    work.script(
        "import os\nfrom steps import note, wait_for\n\n"
        "def run(b):\n    note('by', os.getpid())\n    wait_for('go')\n    return b\n"
    )
    work.job()
    command = work.start_job("--nodes", "3")
    command.wait_for(lambda: len(set(work.noted("by"))) == 6, "each process has a mini-batch")
    work.make("go")
    result = command.wait()
    assert result.code == 0, result
    assert "running 3 nodes with 2 processes on this machine" in result.output

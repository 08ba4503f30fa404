"""Measures how fast an output gets into a bucket, beside `aws s3 cp` of the same file on the same
server (versitygw on loopback), in turns, and how much memory the coordinator takes for it.

Prints a line per figure: the median, and the smallest and largest of the repetitions.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from local_run import PeakMemory
from s3_server import OWNER, REGION, ROOT, Server

# One file gives 8 rows of 1 MB.
LARGE = """def run(mini_batch):
    return [name[-1] * 999_999 for name in mini_batch for _ in range(8)]
"""


def product(programs, work, output, environment):
    """Runs the job; seconds from its last mini-batch to its end, the coordinator's peak MB."""
    words = [programs / "parallelrun", "run", work / "code/large.py", "--input", work / "in"]
    words += ["--output", output, "--mini-batch-size", "1", "--processes", "2", "--overwrite"]
    words += ["--python", sys.executable, "--events", "jsonl", "--state", work / "state"]
    if not str(output).startswith("s3://"):
        words = words[:-2]
    with subprocess.Popen(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=work,
        env=environment,
    ) as child:
        memory = PeakMemory(child.pid)
        memory.start()
        events = [json.loads(line) for line in child.stdout]
        memory.stop.set()
        memory.join()
    assert child.returncode == 0, events[-1]
    begun = [e["seconds"] for e in events if e.get("phase") == "Finalizing"]
    return events[-1]["seconds"] - begun[-1], memory.peak


def copy(file, url, server, environment):
    """`aws s3 cp`: seconds."""
    started = time.monotonic()
    subprocess.run(
        ["aws", "--endpoint-url", server.url, "s3", "cp", "--only-show-errors", file, url],
        check=True,
        env=environment,
    )
    return time.monotonic() - started


def say(what, values, unit):
    middle = statistics.median(values)
    print(f"{what}: {middle:.1f} {unit} ({min(values):.1f} to {max(values):.1f})", flush=True)
    return middle


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--megabytes", type=int, default=800)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="upload-"))
    server = Server(work / "s3")
    try:
        server.bucket("bench")
        (work / "in").mkdir()
        for number in range(options.megabytes // 8):
            (work / f"in/{number:05}").touch()
        (work / "code").mkdir()
        (work / "code/large.py").write_text(LARGE)
        environment = {
            **os.environ,
            "HOME": str(work),
            "AWS_ENDPOINT_URL_S3": server.url,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": OWNER[0],
            "AWS_SECRET_ACCESS_KEY": OWNER[1],
        }
        uploads, memory, copies, folders, plain = [], [], [], [], []
        for _ in range(options.runs):
            seconds, peak = product(options.programs, work, work / "out", environment)
            folders.append(seconds)
            plain.append(peak)
            seconds, peak = product(options.programs, work, "s3://bench/rows.txt", environment)
            uploads.append(seconds)
            memory.append(peak)
            (file,) = (work / "out").glob("*.txt")
            if shutil.which("aws"):
                copies.append(copy(file, "s3://bench/copy.txt", server, environment))
        size = file.stat().st_size / 1e6
        print(f"an output of {size:.0f} MB, from the last mini-batch to the end of the command")
        say("into a folder", [size / s for s in folders], "MB/s")
        upload = say("into a bucket", [size / s for s in uploads], "MB/s")
        if copies:
            other = say("aws s3 cp of the same file", [size / s for s in copies], "MB/s")
            print(f"the bucket beside aws s3 cp: {upload / other:.2f}")
        else:
            print("aws is not installed: nothing to compare with")
        say("the coordinator's memory, with a folder", plain, "MB")
        say("the coordinator's memory, with a bucket", memory, "MB")
    finally:
        server.close()
        shutil.rmtree(work)


if __name__ == "__main__":
    main()

"""Has each file processed by another program; its output is this process's."""

import subprocess


def run(mini_batch):
    done = []
    for path in mini_batch:
        found = subprocess.run(["cat", path], stdout=subprocess.PIPE, check=False)
        subprocess.run(["ls", path], check=False)
        if found.returncode == 0:
            done.append(found.stdout.decode().strip())
    return done

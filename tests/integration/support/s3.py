"""The program that asks a store (tests/store), beside the servers of tests/support."""

import json
import os
import subprocess
import tempfile

from s3_server import OWNER, REGION

from support.command import PATIENCE, PROGRAM


class Store:
    """The program over one bucket: a process of its own, which ends with it."""

    def __init__(self, url, endpoint, keys=OWNER, region=REGION, program=None, **variables):
        """`program`: the words that start it, in place of that of this build."""
        # Without a profile of whoever runs the tests. It is there: a program may make a home that
        # is not.
        self._home = tempfile.TemporaryDirectory()
        environment = {"HOME": self._home.name, "AWS_EC2_METADATA_DISABLED": "true", **variables}
        if keys:
            environment.update(AWS_ACCESS_KEY_ID=keys[0], AWS_SECRET_ACCESS_KEY=keys[1])
        for name in os.environ:
            if name.endswith("SAN_OPTIONS"):
                environment[name] = os.environ[name]
        self.process = subprocess.Popen(
            [*(program or [PROGRAM.parent / "read_bucket"]), url, endpoint, region],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.log = self.process.communicate(timeout=PATIENCE)[1]
        self._home.cleanup()

    def ask(self, do, **words):
        self.process.stdin.write(json.dumps({"do": do, **words}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def first_line(self):
        """Of one that cannot be made."""
        return json.loads(self.process.stdout.readline())

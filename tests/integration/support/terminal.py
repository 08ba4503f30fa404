"""A command in a terminal of its own: what is typed there, and what then stands there."""

import os
import pty
import select
import signal
import subprocess

from waits import Limit, TooLate, wait_for_process


class Terminal:
    """Runs `words` with a pseudo-terminal as stdin, stdout and stderr; close it in the end."""

    def __init__(self, words, folder, environment):
        ours, theirs = pty.openpty()
        try:
            self._popen = subprocess.Popen(
                [str(word) for word in words],
                cwd=folder,
                env=environment,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        self._ours = ours
        self._seen = 0  # bytes of the output that expect() has passed
        self.output = ""

    def expect(self, text, limit=60.0):
        """Waits until the text stands behind what was expected before."""
        wait = Limit(limit)
        while (found := self.output.find(text, self._seen)) < 0:
            if wait.over():
                raise TooLate(f"{text!r} does not come:\n{self.output}")
            assert self._read(), f"it ended before {text!r}:\n{self.output}"
        self._seen = found + len(text)

    def type(self, line):
        os.write(self._ours, line.encode() + b"\n")

    def press(self, key):
        os.write(self._ours, key.encode())

    def wait(self, limit=60.0):
        """The exit status, once the command has ended."""
        wait = Limit(limit)
        while not wait.over() and self._read():
            pass
        return wait_for_process(self._popen, lambda: f"it ends:\n{self.output}", limit)

    def close(self):
        if self._popen.poll() is None:
            os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()
        os.close(self._ours)

    def _read(self, pause=0.1):
        """What has come, or comes soon; False at the end of the output."""
        ready, _, _ = select.select([self._ours], [], [], pause)
        if not ready:
            return True
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # a terminal whose other end is closed says EIO
            return False
        self.output += data.decode(errors="backslashreplace").replace("\r\n", "\n")
        return bool(data)

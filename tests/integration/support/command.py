"""The command under test, in a session of its own, with a time limit and its output in a file."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
from pathlib import Path

from waits import LONGER, Limit, wait_for_process, wait_until

from support import processes

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(os.environ.get("PARALLELRUN_BIN") or ROOT / "build/release/bin").resolve()
PROGRAM = BIN / "parallelrun"


# Whoever started the tests may have them ignore these (nohup): what they start would, too.
for _signo in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(_signo) == signal.SIG_IGN:
        signal.signal(_signo, lambda *_: None)

# Seconds that a wait without a clock of its own may take, as a socket's.
PATIENCE = 30 * (1 + LONGER)


class Result:
    def __init__(self, code, output, seconds):
        self.code = code
        self.output = output
        self.seconds = seconds

    def __repr__(self):
        return f"exit status {self.code} after {self.seconds:.1f} s:\n{self.output}"


class Command:
    """A running `parallelrun WORDS`; `terminal` gives it one, and so the live progress line."""

    def __init__(self, words, folder, environment, log, terminal=False):
        self.log = Path(log)
        self.started = time.monotonic()
        self._reader = None
        if terminal:
            ours, theirs = pty.openpty()
            # Wide, so that nothing is cut off the progress line, whatever the figures in it.
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 50, 300, 0, 0))
            stdout = theirs
        else:
            stdout = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            self._popen = subprocess.Popen(
                words,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stdout,
                start_new_session=True,
            )
        finally:
            os.close(stdout)
        self.pid = self._popen.pid
        if terminal:
            self._reader = threading.Thread(target=self._copy, args=(ours,))
            self._reader.start()

    def _copy(self, terminal):
        with open(self.log, "wb") as log:
            try:
                while data := os.read(terminal, 65536):
                    log.write(data)
                    log.flush()
            except OSError:  # a terminal whose other end closed says EIO, not end of file
                pass
        os.close(terminal)

    @property
    def output(self):
        return self.log.read_bytes().decode(errors="backslashreplace") if self.log.exists() else ""

    @property
    def ended(self):
        return self._popen.poll() is not None

    def send(self, signo):
        self._popen.send_signal(signo)

    def wait_for(self, condition, what, limit=60.0):
        """Until condition() is true, which it must be before the command ends."""

        def done():
            value = condition()
            if not value and self.ended:
                raise AssertionError(f"the command ended before: {what}\n{self.output}")
            return value

        return wait_until(done, lambda: f"{what}\n{self.output}", limit)

    def wait_for_text(self, text, limit=60.0):
        self.wait_for(lambda: text in self.output, f"the command says {text!r}", limit)

    def wait(self, limit=240.0):
        """The end of the command; nothing that it started may be running then."""
        result = self.wait_only(limit)
        processes.expect_nothing_running()
        return result

    def wait_only(self, limit=240.0):
        code = wait_for_process(self._popen, lambda: f"the command ends\n{self.output}", limit)
        seconds = time.monotonic() - self.started
        if self._reader:
            wait = Limit(10)
            while self._reader.is_alive() and not wait.over():
                self._reader.join(0.1)
        return Result(code, self.output, seconds)

    def close(self):
        if not self.ended:
            os.killpg(self.pid, signal.SIGKILL)
            self._popen.wait()

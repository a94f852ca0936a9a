"""A command that is told lines through a pipe, and whose lines are read from another one."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

from rota.execution.folder import last_of

CHUNK = 1 << 16


class Pipe:
    """The pipes to and from a command in a session of its own: Ctrl-C is for the controller."""

    def __init__(self, process: subprocess.Popen[bytes], answers: int, log: Path) -> None:
        """Take over a process with a pipe as its input, the file descriptor of its answers, and its log."""
        self._process, self._log, self._rest = process, log, b""
        self.answers = answers

    @property
    def pid(self) -> int:
        """The process id of the command."""
        return self._process.pid

    def say(self, line: bytes) -> None:
        """Write a line to the command, if it has not ended."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended: that is heard of when its lines end
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def heard(self) -> list[bytes] | None:
        """Return complete lines of output; None at its end."""
        chunk = os.read(self.answers, CHUNK)
        if not chunk:
            return None
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return lines

    def last_words(self) -> str:
        """Return the end of its log."""
        return last_of(self._log)

    def hang_up(self) -> None:
        """Close its input, upon which workers and jobs end."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

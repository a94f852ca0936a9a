"""A command of Slurm that is talked to through its pipes: an srun, or the salloc that holds a node."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rota.execution.logs import last_of, opened

CHUNK = 1 << 16
PATIENCE_S = {signal.SIGTERM: 1.0, signal.SIGKILL: 10.0}
"""For how long a command that was told to end may take before it gets this."""


class Pipe:
    """Lines go in and come out. It is in a session of its own: Ctrl-C is for the controller."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._log, self._rest = log, b""
        printed = opened(log)
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=printed,
                env=environment, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(printed)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def file(self) -> int:
        """Where it is heard."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def say(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended: that is heard of when its lines end
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def heard(self) -> list[bytes] | None:
        """Whole lines; None if there will be no more. What a prolog of Slurm prints is not for us."""
        chunk = os.read(self.file, CHUNK)
        if not chunk:
            return None
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [line for line in lines if line.startswith(b"{")]

    def last_words(self) -> str:
        """What it printed at last. How it exited says nothing: an srun whose node failed exits with 0."""
        return last_of(self._log).strip()

    def hang_up(self) -> None:
        """Tell it that there will be no more: workers end then, and jobs."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def kill(self) -> None:
        """Whatever it ran is gone already."""
        self._process.kill()
        self.end()

    def end(self) -> None:
        """Make sure that it ends: by a signal, if it is in a queue and does not listen."""
        self.hang_up()
        for more in (signal.SIGTERM, signal.SIGKILL):
            try:
                self._process.wait(PATIENCE_S[more])
                break
            except subprocess.TimeoutExpired:
                self._process.send_signal(more)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@dataclass(eq=False, slots=True)
class Step:
    """The worker of a slot."""

    slot: int
    node: int
    pipe: Pipe
    ready: bool = False
    orders: int = 0
    """That it has not answered."""
    ended_s: float = 0.0


@dataclass(eq=False, slots=True)
class Hold:
    """The job of a node."""

    node: int
    pipe: Pipe

"""The processes of one trial, as its sweep sees them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

from rota.execution.slurm_commands import with_rota
from rota.sweeps.inside import TAG
from rota.sweeps.slurm import SlurmCfg, srun

GRACE_S = 10.0
"""Seconds that a trial may take to exit, after its end or after a signal."""
SETTLE_S = 5.0
"""Maximal seconds between the end of a pipe and the end of its process."""
WORKER = [sys.executable, "-P", "-m", "rota.sweeps.worker"]


class TrialProcesses:
    """The processes of one trial. The first one talks to the sweep; on Slurm it is an srun, the only one."""

    def __init__(
        self, processes: list[Popen[bytes]], assignment: dict[str, Any], ending: int = signal.SIGKILL
    ) -> None:
        self.processes, self._ending, self._is_silent = processes, ending, False
        self.said_the_end_s: float | None = None
        self._heard = b""
        os.set_blocking(self.pipe, False)
        line = f"{json.dumps(assignment)}\n".encode()
        for process in processes:
            self._send(process, line)

    @property
    def pipe(self) -> int:
        """The file descriptor of its output."""
        stdout = self.processes[0].stdout
        assert stdout is not None
        return stdout.fileno()

    def hear(self) -> Iterator[dict[str, Any]]:
        """Return its messages since the last call."""
        try:
            while new := os.read(self.pipe, 65536):
                self._heard += new
            self._is_silent = True
        except BlockingIOError:
            pass
        *lines, self._heard = self._heard.split(b"\n")
        mark = TAG.encode()
        return (json.loads(line.removeprefix(mark)) for line in lines if line.startswith(mark))

    def answer(self, message: dict[str, Any]) -> None:
        """Send a message to the process that talks."""
        self._send(self.processes[0], f"{json.dumps(message)}\n".encode())

    @staticmethod
    def _send(process: Popen[bytes], line: bytes) -> None:
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # that it has died is noticed elsewhere
            process.stdin.write(line)
            process.stdin.flush()

    def codes(self) -> list[int | None]:
        """Return the exit code of each process; None while it runs."""
        return [process.poll() for process in self.processes]

    def is_broken(self) -> bool:
        """Return whether one of several processes failed, or the one that talks is gone."""
        codes = self.codes()
        return self._is_silent or codes[0] is not None or any(codes[1:])

    def last_codes(self) -> list[int | None]:
        """Return the exit codes, a moment after a process has closed its pipe."""
        if self._is_silent:
            with suppress(subprocess.TimeoutExpired):
                self.processes[0].wait(SETTLE_S)
        return self.codes()

    def is_over(self) -> bool:
        """Return whether all processes have exited, had the time to, or one has failed."""
        late = self.said_the_end_s is not None and time.monotonic() > self.said_the_end_s + GRACE_S
        codes = self.codes()
        return late or any(codes) or None not in codes

    def tell_to_end(self) -> None:
        """Signal the processes: an srun ends its tasks, local ones are killed with all they started."""
        for process in self.processes:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, self._ending)

    def close(self) -> None:
        """Make sure that no process is left."""
        self.tell_to_end()
        for process in self.processes:
            try:
                process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(BrokenPipeError):
                    if pipe is not None:
                        pipe.close()


def start_here(cfg: SlurmCfg, assignment: dict[str, Any]) -> TrialProcesses:
    """Start a trial on this machine."""
    ranks = _ranks(cfg.ntasks)
    processes = [_started(WORKER, assignment, more, talks=not rank) for rank, more in enumerate(ranks)]
    return TrialProcesses(processes, assignment)


def start_step(cfg: SlurmCfg, assignment: dict[str, Any]) -> TrialProcesses:
    """Start a trial as a job step of the allocation."""
    process = _started([*srun(cfg), *WORKER], assignment, {}, talks=True)
    return TrialProcesses([process], assignment, ending=signal.SIGTERM)


def _ranks(size: int) -> list[dict[str, str]]:
    """Return the environment of each process, by which torch.distributed finds the others."""
    if size == 1:
        return [{}]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    common |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(size))
    return [common | dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank)) for rank in range(size)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _started(
    command: list[str], assignment: dict[str, Any], more: dict[str, str], *, talks: bool
) -> Popen[bytes]:
    """Start a process in a session of its own, so that Ctrl-C does not reach it."""
    outside = {name: value for name, value in os.environ.items() if name not in ("RANK", "SLURM_PROCID")}
    environment = with_rota(outside) | more
    with Path(assignment["output"]).open("ab") as output:
        return Popen(
            command,
            stdin=PIPE,
            stdout=PIPE if talks else DEVNULL,
            stderr=output,
            env=environment,
            start_new_session=True,
        )

"""The processes of one trial, seen from its sweep."""

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

import rota
from rota.sweeps.inside import TAG
from rota.sweeps.slurm import SlurmCfg, srun

GRACE_S = 10.0
"""For how long a trial that has ended may tidy up, and one that is told to end may take."""
SETTLE_S = 5.0
"""How long the end of a process may come after the end of its pipe."""
WORKER = [sys.executable, "-P", "-m", "rota.sweeps.worker"]


class Team:
    """The processes of one trial. The first one talks to the sweep; on Slurm it is an srun, the only one."""

    def __init__(
        self, processes: list[Popen[bytes]], order: dict[str, Any], ending: signal.Signals = signal.SIGKILL
    ) -> None:
        self.processes = processes
        self._ending = ending
        self._is_silent = False
        self.said_the_end_s: float | None = None
        self._heard = b""
        os.set_blocking(self.pipe, False)
        line = f"{json.dumps(order)}\n".encode()
        for process in processes:
            self._send(process, line)

    @property
    def pipe(self) -> int:
        """Where it is heard."""
        stdout = self.processes[0].stdout
        assert stdout is not None
        return stdout.fileno()

    def hear(self) -> Iterator[dict[str, Any]]:
        """What it has said since it was last asked."""
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
        """To the one that talks."""
        self._send(self.processes[0], f"{json.dumps(message)}\n".encode())

    @staticmethod
    def _send(process: Popen[bytes], line: bytes) -> None:
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # that it has died is noticed elsewhere
            process.stdin.write(line)
            process.stdin.flush()

    def codes(self) -> list[int | None]:
        """The exit codes of those that have ended."""
        return [process.poll() for process in self.processes]

    def is_broken(self) -> bool:
        """Whether one of several has failed, or the one that talks has gone."""
        codes = self.codes()
        return self._is_silent or codes[0] is not None or any(codes[1:])

    def last_codes(self) -> list[int | None]:
        """The exit codes when one has closed its pipe, a moment before it has one."""
        if self._is_silent:
            with suppress(subprocess.TimeoutExpired):
                self.processes[0].wait(SETTLE_S)
        return self.codes()

    def is_over(self) -> bool:
        """Whether all have gone, or had the time to; where one has failed the others are not waited for."""
        late = self.said_the_end_s is not None and time.monotonic() > self.said_the_end_s + GRACE_S
        codes = self.codes()
        return late or any(codes) or None not in codes

    def tell_to_end(self) -> None:
        """An srun ends its tasks. A process of our own is ended together with all that it has started."""
        for process in self.processes:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, self._ending)

    def close(self) -> None:
        """Make sure that nothing is left of it."""
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


def start_here(cfg: SlurmCfg, order: dict[str, Any]) -> Team:
    """A trial on this machine."""
    places = [_place(rank, cfg.ntasks) for rank in range(cfg.ntasks)]
    port = {"MASTER_PORT": str(_free_port())} if cfg.ntasks > 1 else {}
    processes = [_started(WORKER, order, place | port, talks=not rank) for rank, place in enumerate(places)]
    return Team(processes, order)


def start_step(cfg: SlurmCfg, order: dict[str, Any]) -> Team:
    """A trial as a job step of the allocation."""
    return Team([_started([*srun(cfg), *WORKER], order, {}, talks=True)], order, ending=signal.SIGTERM)


def _place(rank: int, ranks: int) -> dict[str, str]:
    """What torch.distributed reads to find the others."""
    if ranks == 1:
        return {}
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
    return {name: str(value) for name, value in place.items()} | {"MASTER_ADDR": "127.0.0.1"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _started(
    command: list[str], order: dict[str, Any], place: dict[str, str], *, talks: bool
) -> Popen[bytes]:
    """In a session of its own: Ctrl-C is for the sweep, and it can be ended with all that it has started."""
    outside = {name: value for name, value in os.environ.items() if name not in ("RANK", "SLURM_PROCID")}
    found = [str(Path(rota.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = outside | {"PYTHONPATH": os.pathsep.join(found)} | place
    with Path(order["output"]).open("ab") as output:
        return Popen(
            command,
            stdin=PIPE,
            stdout=PIPE if talks else DEVNULL,
            stderr=output,
            env=environment,
            start_new_session=True,
        )

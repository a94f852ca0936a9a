"""Trials as job steps of the Slurm allocation that a sweep runs in."""

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from rota.core.errors import ConfigError

MEMORY = ("--mem", "--mem-per-cpu", "--mem-per-gpu")
"""Options of srun, of which it takes one."""


@dataclass(frozen=True)
class SlurmCfg:
    """The resources of a trial. Outside Slurm it is `ntasks` processes on this machine."""

    exclusive: bool = True
    """Whether the trial has its cores to itself."""
    nodes: int = 1
    ntasks: int = 1
    """Number of processes."""
    args: str = ""
    """Further arguments of srun, as on a command line."""

    def __post_init__(self) -> None:
        if not self.ntasks >= self.nodes >= 1:
            raise ConfigError(f"nodes is {self.nodes}, ntasks {self.ntasks}; give 1 ≤ nodes ≤ ntasks")
        try:
            shlex.split(self.args)
        except ValueError as error:
            raise ConfigError(f"args is {self.args!r}: {error}") from None


def is_allocation(environment: Mapping[str, str]) -> bool:
    """Return whether this process can start job steps."""
    return "SLURM_JOB_ID" in environment and shutil.which("srun") is not None


def tasks(environment: Mapping[str, str]) -> int:
    """Return the number of tasks of the allocation."""
    return int(environment.get("SLURM_NTASKS") or environment.get("SLURM_JOB_NUM_NODES") or 1)


def srun(cfg: SlurmCfg, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the prefix that runs a command as a job step. If a task fails, the others are ended."""
    command = [
        "srun",
        f"--nodes={cfg.nodes}",
        f"--ntasks={cfg.ntasks}",
        "--kill-on-bad-exit=1",
        "--export=ALL",
    ]
    if cfg.exclusive:
        command.append("--exclusive")
    if cores := environment.get("SLURM_CPUS_PER_TASK"):
        command.append(f"--cpus-per-task={int(cores)}")  # which a step no longer has from its job
    more = shlex.split(cfg.args)
    if not any(word.partition("=")[0] in MEMORY for word in more):
        command.append("--mem=0")  # all that the job has there: steps share it
    return [*command, *more]

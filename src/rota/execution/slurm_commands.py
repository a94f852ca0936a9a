"""Commands of Slurm as lists of arguments, without a shell."""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import rota
from rota.core.errors import InputError

log = logging.getLogger(__name__)

ANSWER_S = 60.0
"""Timeout of a command in seconds."""
GONE = ("down", "fail", "unknown")
"""Prefixes of the states of unusable nodes."""
PYTHON = [sys.executable, "-P", "-m"]
MODULE = "rota.execution.slurm_process"


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """The requirements of a node of the run."""

    slots: int = 1
    cpus: int = 1
    """Number of CPUs of each slot."""
    feature: str = ""
    gres: str = ""
    """The gres of each slot: its name, perhaps with a type."""
    gres_count: int = 0
    host: str = ""
    """The required host; empty: any."""


@dataclass(frozen=True, slots=True)
class Queue:
    """How jobs are requested outside an allocation."""

    arguments: tuple[str, ...] = ()
    """Further arguments of salloc."""
    patience_s: float = 10.0
    """Seconds to wait for further nodes after the first."""


class StepTarget(NamedTuple):
    """The job and the host on which steps can be started."""

    job: str
    host: str


class Host(NamedTuple):
    """A node of an allocation."""

    name: str
    cpus: int
    """Number of its CPUs that are in the allocation."""
    features: frozenset[str]


def step_command(target: StepTarget, request: NodeRequest, slot: int, trial: str, printed: Path) -> list[str]:
    """Return the command that starts a worker as a job step with its own cores, and perhaps a GPU."""
    return [
        "srun",
        f"--jobid={target.job}",
        f"--nodelist={target.host}",
        f"--job-name=slot{slot}",
        "--nodes=1",
        "--ntasks=1",
        "--exact",
        f"--cpus-per-task={request.cpus}",
        f"--gres={_gres(request, 1) or 'none'}",
        "--mem=0",  # all that the job has there: steps share it
        "--export=ALL",
        sys.executable, "-m", MODULE, "step", trial, str(printed.absolute()),
    ]  # fmt: skip


def job_command(request: NodeRequest, name: str, arguments: Sequence[str]) -> list[str]:
    """Return the command that holds a job of one node until its pipe is closed or the controller dies."""
    gres = _gres(request, request.slots)
    optional = {"constraint": request.feature, "gres": gres, "nodelist": request.host}
    return [
        *PYTHON, MODULE, "ask", str(os.getpid()),
        "salloc",
        f"--job-name={name}",
        "--nodes=1",
        f"--ntasks={request.slots}",
        f"--cpus-per-task={request.cpus}",
        "--kill-command=KILL",
        *(f"--{option}={value}" for option, value in optional.items() if value),
        *arguments,
        *PYTHON, MODULE, "hold",
    ]  # fmt: skip


def _gres(request: NodeRequest, times: int) -> str:
    return f"{request.gres}:{request.gres_count * times}" if request.gres else ""


def outside(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables of a batch script, which commands would take for options."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith("SLURM_") or name == "SLURM_CONF"
    }
    return with_rota(kept)


def with_rota(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with rota first on PYTHONPATH."""
    found = [str(Path(rota.__file__).parents[1]), *filter(None, [environment.get("PYTHONPATH")])]
    return {**environment, "PYTHONPATH": os.pathsep.join(found)}


def check_commands() -> None:
    """Raise InputError if a command of Slurm is missing here."""
    missing = [name for name in ("srun", "salloc", "squeue", "sinfo", "scancel") if not shutil.which(name)]
    if missing:
        raise InputError(
            f"Slurm has no {', '.join(missing)} here; run this where they are, or choose another backend"
        )


def is_there(target: StepTarget) -> bool:
    """Return whether the job has the node and the node responds; True if Slurm does not say."""
    node = _asked("sinfo", "--noheader", "--Node", f"--nodes={target.host}", "--format=%T")
    if node is None:
        return True
    state = node.split("\n")[0]
    if state.endswith("*") or state.startswith(GONE):
        return False
    mine = _asked("squeue", "--me", "--noheader", "--format=%A %T")  # one that is over is no error then
    return mine is None or f"{target.job} RUNNING" in mine.splitlines()


def end_jobs(name: str) -> None:
    """Cancel all jobs of this name, left by a controller that was killed together with its salloc."""
    _asked("scancel", "--me", f"--name={name}")


def hosts_inside(environment: Mapping[str, str]) -> list[Host]:
    """Return the nodes of the present allocation that are not down."""
    names = _output_of("scontrol", "show", "hostnames", environment["SLURM_JOB_NODELIST"]).split()
    listed = _output_of("sinfo", "--noheader", "--Node", f"--nodes={','.join(names)}", "--format=%N|%T|%b")
    about = {name: (state, features) for name, state, features in map(_fields, listed.split("\n"))}
    cpus = cpus_per_node(environment.get("SLURM_JOB_CPUS_PER_NODE", ""))
    if len(cpus) != len(names):
        raise InputError(
            f"SLURM_JOB_CPUS_PER_NODE is for {len(cpus)} of {len(names)} nodes; leave it as it was"
        )
    return [
        Host(name, count, frozenset(about[name][1].split(",")))
        for name, count in zip(names, cpus, strict=True)
        if not about[name][0].startswith(GONE)
    ]


def _fields(line: str) -> tuple[str, str, str]:
    name, state, features = line.split("|", 2)
    return name, state, features


def cpus_per_node(text: str) -> list[int]:
    """Parse `4(x2),2` → 4, 4, 2."""
    found = []
    for word in filter(None, text.split(",")):
        count, _, times = word.removesuffix(")").partition("(x")
        found += [int(count)] * int(times or 1)
    return found


def _output_of(*command: str) -> str:
    """Return the output of a command; raise InputError if it fails."""
    answer = _asked(*command)
    if answer is None:
        raise InputError(f"{command[0]} does not answer; is Slurm running? Try: {' '.join(command)}")
    return answer


def _asked(*command: str) -> str | None:
    """Return the output of a command; None if it fails."""
    try:
        done = subprocess.run(
            command, env=outside(os.environ), capture_output=True, text=True, timeout=ANSWER_S, check=True
        )
    except subprocess.CalledProcessError as error:
        log.debug("%s: %s", " ".join(command), error.stderr.strip())
        return None
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("%s: %s", " ".join(command), error)
        return None
    return done.stdout.strip()

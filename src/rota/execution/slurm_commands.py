"""What is asked of Slurm: each command a list of arguments, none of them read by a shell."""

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
"""For how long Slurm may think about a question."""
GONE = ("down", "fail", "unknown")
"""States of a node that begin like this are of no use."""
PYTHON = [sys.executable, "-P", "-m"]


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """What a node of the run is, wherever Slurm puts it."""

    slots: int = 1
    cpus: int = 1
    """Of each slot."""
    feature: str = ""
    gres: str = ""
    """Of each slot: its name, perhaps its type."""
    gres_count: int = 0
    host: str = ""
    """It must be this one, if any is named."""


@dataclass(frozen=True, slots=True)
class Queue:
    """How jobs are asked for where there is no allocation."""

    arguments: tuple[str, ...] = ()
    """Of salloc, besides what nodes need."""
    patience_s: float = 10.0
    """For how long others are waited for once the first node is there."""


class StepTarget(NamedTuple):
    """Where steps can be started."""

    job: str
    host: str


class Host(NamedTuple):
    """A node of an allocation."""

    name: str
    cpus: int
    """Of it that the allocation has."""
    features: frozenset[str]


def step_command(place: StepTarget, lot: NodeRequest, slot: int, trial: str, printed: Path) -> list[str]:
    """A worker as a job step with cores, and perhaps a GPU, of its own."""
    return [
        "srun",
        f"--jobid={place.job}",
        f"--nodelist={place.host}",
        f"--job-name=slot{slot}",
        "--nodes=1",
        "--ntasks=1",
        "--exact",
        f"--cpus-per-task={lot.cpus}",
        f"--gres={_gres(lot, 1) or 'none'}",
        "--mem=0",  # all that the job has there: steps share it
        "--export=ALL",
        sys.executable, "-m", "rota.execution.step", trial, str(printed.absolute()),
    ]  # fmt: skip


def job_command(lot: NodeRequest, name: str, arguments: Sequence[str]) -> list[str]:
    """A job of one node, which lasts until the pipe to it is closed or its controller dies."""
    optional = {"constraint": lot.feature, "gres": _gres(lot, lot.slots), "nodelist": lot.host}
    return [
        *PYTHON, "rota.execution.holding", str(os.getpid()),
        "salloc",
        f"--job-name={name}",
        "--nodes=1",
        f"--ntasks={lot.slots}",
        f"--cpus-per-task={lot.cpus}",
        "--kill-command=KILL",
        *(f"--{option}={value}" for option, value in optional.items() if value),
        *arguments,
        *PYTHON, "rota.execution.holding",
    ]  # fmt: skip


def _gres(lot: NodeRequest, times: int) -> str:
    return f"{lot.gres}:{lot.gres_count * times}" if lot.gres else ""


def outside(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what Slurm told a batch script: commands would take it for what they are asked for."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith("SLURM_") or name == "SLURM_CONF"
    }
    found = [str(Path(rota.__file__).parents[1]), *filter(None, [environment.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(found)}


def check_commands() -> None:
    missing = [name for name in ("srun", "salloc", "squeue", "sinfo", "scancel") if not shutil.which(name)]
    if missing:
        raise InputError(
            f"Slurm has no {', '.join(missing)} here; run this where they are, or choose another backend"
        )


def is_there(place: StepTarget) -> bool:
    """Whether the job has the node, and the node answers. If Slurm does not say, it is taken to be there."""
    node = _asked("sinfo", "--noheader", "--Node", f"--nodes={place.host}", "--format=%T")
    if node is None:
        return True
    state = node.split("\n")[0]
    if state.endswith("*") or state.startswith(GONE):
        return False
    mine = _asked("squeue", "--me", "--noheader", "--format=%A %T")  # one that is over is no error then
    return mine is None or f"{place.job} RUNNING" in mine.splitlines()


def end_jobs(name: str) -> None:
    """All of this name: what a controller left that was killed together with its salloc."""
    _asked("scancel", "--me", f"--name={name}")


def hosts_inside(environment: Mapping[str, str]) -> list[Host]:
    """The nodes of the allocation that this process is in, but for those that are down."""
    names = _told("scontrol", "show", "hostnames", environment["SLURM_JOB_NODELIST"]).split()
    listed = _told("sinfo", "--noheader", "--Node", f"--nodes={','.join(names)}", "--format=%N|%T|%b")
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
    """`4(x2),2` → 4, 4, 2."""
    found = []
    for word in filter(None, text.split(",")):
        count, _, times = word.removesuffix(")").partition("(x")
        found += [int(count)] * int(times or 1)
    return found


def _told(*command: str) -> str:
    """What a command prints; it must work."""
    answer = _asked(*command)
    if answer is None:
        raise InputError(f"{command[0]} does not answer; is Slurm running? Try: {' '.join(command)}")
    return answer


def _asked(*command: str) -> str | None:
    """What a command prints; None if it fails."""
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

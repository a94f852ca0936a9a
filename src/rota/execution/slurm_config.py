"""The configuration of slots on Slurm."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rota.core.cluster import LARGEST, Cluster, Slot
from rota.core.errors import ConfigError
from rota.core.limits import at_least
from rota.execution.engine import WorkerSetup
from rota.execution.slurm import SlurmWorkers
from rota.execution.slurm_commands import Host, NodeRequest, Queue, StepTarget, hosts_inside

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*|", re.ASCII)
GRES = re.compile(r"(?P<name>[A-Za-z]\w*(:[A-Za-z]\w*)?)(:(?P<count>[1-9][0-9]{0,3}))?|", re.ASCII)
ARGUMENT = re.compile(r"--[a-z][a-z-]*(=[^\x00-\x1f\x7f]*)?", re.ASCII)

GPUS = ("gpu", "shard", "mps")
"""Gres that are GPUs, or shares of them."""


@dataclass(frozen=True, slots=True)
class SlurmNodeConfig:
    """Some equal nodes."""

    count: int = 1
    """Number of nodes."""
    slots: int = 1
    """Number of slots of each node."""
    cpus: int = 1
    """Number of CPUs of each slot."""
    gres: str = ""
    """The gres of each slot: `gpu`, `gpu:2`, `gpu:a100:1`, or a share as in `shard:1`; empty: none."""
    feature: str = ""
    """A feature that the nodes must have; empty: any node."""
    host: str = ""
    """The name of the node, if it must be a certain one."""
    speed: float = 1.0
    """Expected speed relative to other slots; it is measured from the first report on."""

    def __post_init__(self) -> None:
        for name in ("count", "slots", "cpus"):
            if not 1 <= getattr(self, name) <= LARGEST:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 to {LARGEST:,}")
        for name in ("feature", "host"):
            if not NAME.fullmatch(getattr(self, name)):
                raise ConfigError(
                    f"{name} is {getattr(self, name)!r}; use letters, digits, dots, dashes and underscores"
                )
        if not GRES.fullmatch(self.gres):
            raise ConfigError(f"gres is {self.gres!r}; write it as gpu, gpu:2 or gpu:a100:1")
        if self.host and self.count != 1:
            raise ConfigError(f"host is {self.host!r}, count {self.count}; a host is one node")

    @property
    def request(self) -> NodeRequest:
        """The requirements of one of the nodes."""
        found = GRES.fullmatch(self.gres)
        assert found is not None
        count = int(found["count"] or 1) if self.gres else 0
        return NodeRequest(self.slots, self.cpus, self.feature, found["name"] or "", count, self.host)


@dataclass(frozen=True, slots=True)
class SlurmConfig:
    """Nodes of Slurm: those of the present allocation, or a job for each."""

    nodes: tuple[SlurmNodeConfig, ...] = (SlurmNodeConfig(slots=2),)
    """Groups of nodes, in the order in which their slots are first assigned."""
    arguments: tuple[str, ...] = ()
    """Arguments of salloc, outside an allocation: `--partition=…`, `--account=…`, `--time=…`."""
    patience_s: float = 10.0
    """Seconds to wait for further nodes after the first; the rest may join later."""

    def __post_init__(self) -> None:
        for argument in self.arguments:
            if not ARGUMENT.fullmatch(argument):
                raise ConfigError(f"arguments: {argument!r}; write each as --name=value, in one line")
        at_least(0, finite=True, patience_s=self.patience_s)
        self.cluster()

    def cluster(self) -> Cluster:
        """Return the cluster; its nodes have names of their own, as Slurm may grant others each time."""
        names: list[str] = []
        slots: list[Slot] = []
        for group in self.nodes:
            for _ in range(group.count):
                device = "gpu" if group.gres.startswith(GPUS) else "cpu"
                slots += [Slot(len(names), group.speed, device=device)] * group.slots
                names.append(_free_name(group, names))
        return Cluster.of_slots(tuple(slots), tuple(names))

    def requests(self) -> list[NodeRequest]:
        """Return the requirements of each node."""
        return [group.request for group in self.nodes for _ in range(group.count)]

    def check(self) -> None:
        """Do nothing: only Slurm knows what there is."""

    def workers(self, cluster: Cluster, setup: WorkerSetup) -> SlurmWorkers:
        """Return workers in the present allocation, or in a job per node."""
        queue, hello, logs = Queue(self.arguments, self.patience_s), setup.hello(), setup.paths.logs
        allocated = self._allocated(os.environ)
        return SlurmWorkers(cluster, self.requests(), allocated, queue, setup.trial, hello, logs)

    def _allocated(self, environment: Mapping[str, str]) -> dict[int, StepTarget] | None:
        """Return the step target of each node in the present allocation; None outside one."""
        job = environment.get("SLURM_JOB_ID")
        if job is None:
            return None
        found = match_hosts(self.requests(), hosts := hosts_inside(environment))
        if not found:
            have = ", ".join(f"{host.name} with {host.cpus} CPUs" for host in hosts)
            raise ConfigError(
                f"none of the nodes in [slurm] fits those of job {job} ({have}); ask for nodes with their "
                f"features, and for slots × cpus on each: sbatch --ntasks-per-node=… --cpus-per-task=…"
            )
        return {node: StepTarget(job, host) for node, host in found.items()}


def match_hosts(requests: Sequence[NodeRequest], hosts: Sequence[Host]) -> dict[int, str]:
    """Return node → host; demanding nodes choose first, nodes without a host are left out."""
    free, found = list(hosts), dict[int, str]()
    for node, request in sorted(enumerate(requests), key=lambda at: (not at[1].host, not at[1].feature)):
        if fitting := [host for host in free if _fits(request, host)]:
            found[node] = fitting[0].name
            free.remove(fitting[0])
    return found


def _fits(request: NodeRequest, host: Host) -> bool:
    return (
        request.host in ("", host.name)
        and (not request.feature or request.feature in host.features)
        and host.cpus >= request.slots * request.cpus
    )


def _free_name(group: SlurmNodeConfig, names: Sequence[str]) -> str:
    if group.host:
        return group.host
    stem = group.feature or "node"
    number = sum(name.startswith(f"{stem}-") for name in names)
    return f"{stem}-{number}"

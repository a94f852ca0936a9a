"""`rota score --address`: every node of a Ray cluster measures itself."""

from typing import TYPE_CHECKING, Any

from rota.core.errors import InputError, RotaError
from rota.core.population.scores import Resources, ScoredDevice
from rota.execution.ray_cluster import RayCluster, RayNode

if TYPE_CHECKING:
    from rota.training.score import Benchmark, MeasuredBundle

    Found = dict[ScoredDevice, MeasuredBundle]


def measured_on_ray(
    address: str, benchmark: "Benchmark", asked: Resources | None
) -> tuple[Resources, "Found"]:
    """Measure one node after the other: some may be on one machine. Returns what was asked and found.

    Without a file, all CPUs of a node are a bundle, and one GPU, if it has any.
    """
    cluster = RayCluster(address)
    ray = cluster.connect()
    try:
        nodes = {node.name: node for node in cluster.nodes()}
        resources = asked if asked is not None else _all(nodes)
        there = {place: core for place, core in resources.items() if place.ip in nodes}
        if not there:
            raise InputError(f"none of the machines is a node of {address}; it has {', '.join(nodes)}")
        return resources, {
            place: _measured(ray, nodes[place.ip], benchmark, place, core) for place, core in there.items()
        }
    finally:
        cluster.close()


def _all(nodes: dict[str, RayNode]) -> Resources:
    cpus = {ScoredDevice(name, "CPU"): int(node.resources.get("CPU", 0)) for name, node in nodes.items()}
    gpus = {ScoredDevice(name, "GPU"): 1 for name, node in nodes.items() if node.resources.get("GPU", 0) >= 1}
    return {place: core for place, core in {**cpus, **gpus}.items() if core}


def _measured(
    ray: Any, node: RayNode, benchmark: "Benchmark", place: ScoredDevice, core: int
) -> "MeasuredBundle":
    """Measure in a process of its own on a node that has nothing else to do."""
    takes = {"num_cpus": core} if place.device == "CPU" else {"num_cpus": 1, "num_gpus": core}
    if any(amount > node.resources.get(name, 0) for name, amount in _named(takes).items()):
        raise InputError(f"{place}: a bundle of {core}, but the node has fewer; give fewer")
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)
    task = ray.remote(max_calls=1, max_retries=0, scheduling_strategy=strategy, **takes)(_measure)
    found: MeasuredBundle | str = ray.get(task.remote(benchmark, place.device, core))
    if isinstance(found, str):
        raise InputError(f"{place}: {found}")
    return found


def _named(takes: dict[str, int]) -> dict[str, int]:
    return {name.removeprefix("num_").removesuffix("s").upper(): amount for name, amount in takes.items()}


def _measure(benchmark: "Benchmark", device: str, core: int) -> "MeasuredBundle | str":
    """Measure on this node; returns why not if it cannot."""
    from rota.training.score import Bundle, measure

    try:
        return measure(benchmark, Bundle(device, core))
    except RotaError as error:
        return str(error)

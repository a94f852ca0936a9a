"""A workload in numbers: jobs, load, durations, gang sizes and models."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from rota.core.arrays import Floats
from rota.core.limits import at_least
from rota.workload.jobs import Workload

PERCENTILES = (1, 10, 25, 50, 75, 90, 99)


@dataclass(frozen=True, slots=True)
class WorkloadShare:
    """The part of a workload that has one gang size or one model."""

    name: str
    jobs: int
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class Description:
    """The output of `rota trace describe`."""

    name: str
    jobs: int
    gpu_hours: float
    span_s: float
    """Seconds from the first arrival to the last."""
    jobs_per_hour: float | None
    """Arrivals per hour over the span; None if all arrive at once."""
    gpus: int | None
    """GPUs of the cluster that the load refers to."""
    load: float | None
    """GPU time asked for ÷ GPU time of the cluster over the span; None without a cluster or a span."""
    duration_s: dict[str, float]
    """`mean`, `min`, percentiles `p1` to `p99`, `max`."""
    gang_sizes: tuple[WorkloadShare, ...]
    """Gang sizes, ascending."""
    models: tuple[WorkloadShare, ...]
    """Models by GPU-hours, descending."""
    notes: tuple[str, ...]


def describe(jobs: Workload, gpus: int | None = None) -> Description:
    """Summarise a workload; with a number of GPUs also the load it offers to them."""
    at_least(1, gpus=gpus)
    hours = jobs.gpus * jobs.solo_s / 3600
    span_s = float(jobs.submit_s[-1] - jobs.submit_s[0])
    sizes = _shares([f"{size:g}" for size in jobs.gpus.tolist()], hours)
    models = _shares([jobs.models[number] for number in jobs.model.tolist()], hours)
    return Description(
        name=jobs.name,
        jobs=len(jobs),
        gpu_hours=jobs.gpu_s / 3600,
        span_s=span_s,
        jobs_per_hour=(len(jobs) - 1) / span_s * 3600 if span_s else None,
        gpus=gpus,
        load=jobs.gpu_s / (gpus * span_s) if gpus and span_s else None,
        duration_s=_spread(jobs.duration_s),
        gang_sizes=tuple(sorted(sizes, key=lambda share: float(share.name))),
        models=tuple(sorted(models, key=lambda share: (-share.gpu_hours, share.name))),
        notes=jobs.notes,
    )


def text(described: Description) -> str:
    """Return the description as text."""
    shares = {"GPUs": described.gang_sizes, "model": described.models}
    width = max(map(len, [*shares, *(share.name for part in shares.values() for share in part)]))
    lines = [*_facts(described), ""]
    for title, part in shares.items():
        lines += [f"{title:<{width}}  {'jobs':>9}  {'GPU-hours':>13}"]
        lines += [f"{share.name:<{width}}  {share.jobs:>9,}  {share.gpu_hours:>13,.1f}" for share in part]
        lines += [""]
    return "\n".join(lines[:-1])


def readable(seconds: float) -> str:
    """Return a duration in a suitable unit: `42 s`, `2.5 h`."""
    for unit_s, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * unit_s:
            return f"{seconds / unit_s:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def _facts(described: Description) -> list[str]:
    lasts = [f"{name} {readable(seconds)}" for name, seconds in described.duration_s.items()]
    rate = described.jobs_per_hour
    facts = [
        f"{described.name}: {described.jobs:,} jobs, {described.gpu_hours:,.1f} GPU-hours",
        f"arrivals   over {readable(described.span_s)}"
        + (f", {rate:,.2f} jobs per hour" if rate else ", all at once"),
        f"durations  {', '.join(lasts)}",
    ]
    if described.load is not None:
        facts.append(f"load       {described.load:.3f} on {described.gpus:,} GPUs")
    return facts


def _spread(duration_s: Floats) -> dict[str, float]:
    percentiles = np.percentile(duration_s, PERCENTILES).tolist()
    return {
        "mean": float(duration_s.mean()),
        "min": float(duration_s.min()),
        **{f"p{rank}": value for rank, value in zip(PERCENTILES, percentiles, strict=True)},
        "max": float(duration_s.max()),
    }


def _shares(names: list[str], hours: Floats) -> list[WorkloadShare]:
    jobs = Counter(names)
    totals = dict.fromkeys(jobs, 0.0)
    for name, value in zip(names, hours.tolist(), strict=True):
        totals[name] += value
    return [WorkloadShare(name, jobs[name], totals[name]) for name in jobs]

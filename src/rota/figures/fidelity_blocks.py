"""What the figure of a comparison shows: who ran where and when, for real and simulated, and who was done."""

from typing import NamedTuple

from rota.core.population.events import Reported
from rota.figures.gantt_blocks import blocks
from rota.results.fidelity.pairs import AnyRun, Pair
from rota.results.fidelity.told import Told
from rota.results.population.run import PopulationRun
from rota.results.run import Run

LOG_FROM = 20.0
"""Completion times that are further apart than this factor are shown on logarithmic axes."""
MARGIN = 1.1
"""Of axes of completion times: so that it can be seen what a few per cent are."""


class Bar(NamedTuple):
    """A trial or a job on neighbouring slots, or on its share of one."""

    began_s: float
    ended_s: float
    who: str
    top: float
    bottom: float
    """In slots, from the first one down."""


class Chart(NamedTuple):
    """One timeline, slot by slot."""

    slots: list[str]
    bars: list[Bar]


class Extent(NamedTuple):
    """Of an axis of completion times."""

    low_s: float
    high_s: float
    log: bool


def charts(pair: Pair) -> tuple[Chart, Chart]:
    """The real timeline and the simulated one."""
    return _chart(pair.real, pair.seed), _chart(pair.simulated, pair.seed)


def done(told: Told) -> tuple[list[float], list[float]]:
    """When, and which share of all was done then; begins with nothing at 0."""
    ends_s = sorted(life.end_s for life in told.lives.values())
    return [0.0, *ends_s], [place / len(ends_s) for place in range(len(ends_s) + 1)]


def completion_times(real: Told, simulated: Told) -> tuple[list[float], list[float]]:
    """Of each trial or job, in the same order."""
    return (
        [life.jct_s for life in real.lives.values()],
        [simulated.lives[name].jct_s for name in real.lives],
    )


def extent(times_s: list[float]) -> Extent:
    """An axis that has room for all of them, and for what is a little more or less."""
    low_s, high_s = min(times_s), max(times_s)
    log = low_s > 0.0 and high_s / low_s > LOG_FROM
    return Extent(low_s / MARGIN, high_s * MARGIN or 1.0, log)


def _chart(run: AnyRun, seed: int | None) -> Chart:
    if isinstance(run, PopulationRun):
        assert seed is not None
        return _of_population(run, seed)
    return _of_jobs(run)


def _of_population(run: PopulationRun, seed: int) -> Chart:
    bars = [
        Bar(event.began_s, event.ended_s, str(event.trial), event.slot, event.slot + 1.0)
        for event in run.events(seed)
        if isinstance(event, Reported)
    ]
    several = len({slot.node for slot in run.summary.slots}) > 1
    names = [
        f"slot {number}{f' ({slot.node})' if several else ''}"
        for number, slot in enumerate(run.summary.slots)
    ]
    return Chart(names, bars)


def _of_jobs(run: Run) -> Chart:
    """On a clock that starts with the first submit."""
    origin_s, cluster = float(run.jobs.submit_s.min()), run.cluster
    window_s = (origin_s, float(run.times.end_s.max()))
    bars = [
        Bar(
            block.start_s - origin_s,
            block.end_s - origin_s,
            run.jobs.ids[block.job],
            block.slot + block.low,
            block.slot + block.slots - 1 + block.high,
        )
        for block in blocks(run.timeline(), cluster, window_s)
    ]
    names = [f"node {node}" for node in cluster.slot_nodes().tolist()]
    return Chart(names, bars)

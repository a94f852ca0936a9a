"""Summaries of a population over seeds, as values and as text."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from rota.core.errors import InputError
from rota.core.grouped import grouped
from rota.core.text import aligned
from rota.results.population.metrics import SlotUse
from rota.results.population.repetition import Repetition, by_size


@dataclass(frozen=True, slots=True)
class SlotInfo:
    """A slot: its node, device and speed."""

    node: str
    device: str
    speed: float


@dataclass(frozen=True, slots=True)
class PopulationSummary:
    """The results of an allocation over all seeds."""

    allocation: str
    evolution: str
    population: str
    """Size of the population: `20 trials × 1,000 steps`."""
    cluster: str
    """Name of the cluster, or the speeds of its slots."""
    target: float | None
    """Metric at which a trial is done; None if only its steps count."""
    slots: tuple[SlotInfo, ...]
    repetitions: tuple[Repetition, ...]
    mode: str = "max"
    """"max" or "min". With "min", metrics and the target are negated: here more is always better."""
    growth: str = "never"
    """How networks grew."""
    timing: str = ""
    """Where step times are from: `measured on v100`, or `scaled from cpu to k80, v100`; empty if assumed."""

    def __post_init__(self) -> None:
        if not self.repetitions:
            raise InputError("repetitions: there are none")
        for each in self.repetitions:
            if len(each.slots) != len(self.slots):
                found = f"{len(each.slots)} of {len(self.slots)} slots"
                raise InputError(f"repetitions: seed {each.seed} has {found}")
        if len({each.seed for each in self.repetitions}) != len(self.repetitions):
            raise InputError("repetitions: two have the same seed")

    @property
    def makespan_s(self) -> float:
        """The mean makespan in seconds."""
        return mean(each.makespan_s for each in self.repetitions)

    @property
    def lower_bound_s(self) -> float:
        """The mean lower bound on the makespan in seconds."""
        return mean(each.lower_bound_s for each in self.repetitions)

    @property
    def ratio(self) -> float:
        """The mean makespan ÷ the mean lower bound."""
        return self.makespan_s / self.lower_bound_s

    @property
    def decisions_per_s(self) -> float:
        """Placements per second of simulation."""
        wall_s = sum(each.wall_s for each in self.repetitions)
        return sum(each.decisions for each in self.repetitions) / wall_s if wall_s else 0.0

    @property
    def idle(self) -> float:
        """The idle share of the time of all slots."""
        uses = self.slot_use()
        return sum(use.idle_s for use in uses) / (sum(use.there_s for use in uses) or 1.0)

    @property
    def clones(self) -> float:
        """The mean number of clones."""
        return mean(each.clones for each in self.repetitions)

    @property
    def best_accuracy(self) -> float | None:
        """The mean of the best metrics; None if nothing was measured."""
        return mean_of_known(each.best_accuracy for each in self.repetitions)

    @property
    def final_accuracy(self) -> float | None:
        """The mean of the best last metrics; None if nothing was measured."""
        return mean_of_known(each.final_accuracy for each in self.repetitions)

    @property
    def to_target_s(self) -> float | None:
        """The mean seconds to the target, over the repetitions that reached it."""
        return mean_of_known(each.to_target_s for each in self.repetitions)

    @property
    def has_deadline(self) -> bool:
        """Whether the run ended at a deadline."""
        return self.repetitions[0].deadline_s is not None

    @property
    def best_three(self) -> float | None:
        """The mean over the repetitions of the mean of the best three last metrics."""
        return mean_of_known(each.best_three for each in self.repetitions)

    @property
    def test_accuracy(self) -> float | None:
        """The mean test accuracy of the chosen trial; None if it was not measured."""
        return mean_of_known(each.test_accuracy for each in self.repetitions)

    @property
    def gpu_s(self) -> float | None:
        """The mean seconds in which slots were in use, added up over the slots."""
        return mean_of_known(each.gpu_s for each in self.repetitions)

    @property
    def growths(self) -> float:
        """The mean number of times that a network grew."""
        return mean(each.growths for each in self.repetitions)

    @property
    def sign(self) -> float:
        """The factor on a metric for display."""
        return -1.0 if self.mode == "min" else 1.0

    @property
    def in_percent(self) -> bool:
        """Whether metrics are accuracies, or other shares of 1."""
        best = self.best_accuracy
        return self.mode == "max" and (best is None or abs(best) <= 1.0)

    @property
    def metric_name(self) -> str:
        """The name of the metric."""
        return "accuracy" if self.in_percent else "metric"

    def shown(self, metric: float | None) -> str:
        """Return a metric as text, with the sign that it was reported with."""
        if metric is None:
            return "-"
        return f"{metric:.1%}" if self.in_percent else f"{self.sign * metric:.4g}"

    def slot_use(self) -> list[SlotUse]:
        """Return the use of each slot: seconds are means over the repetitions, counts are sums."""
        return [_together(uses) for uses in zip(*(each.slots for each in self.repetitions), strict=True)]

    def batch_sizes(self) -> dict[str, dict[str, int]]:
        """Return the steps by node and batch size, in all repetitions."""
        total: dict[str, dict[str, int]] = {}
        for each in self.repetitions:
            for node, sizes in each.batch_sizes.items():
                known = total.setdefault(node, {})
                for size, steps in sizes.items():
                    known[size] = known.get(size, 0) + steps
        return {node: by_size(sizes) for node, sizes in total.items()}

    def record(self) -> dict[str, Any]:
        """Return plain values, averages first."""
        return {
            "allocation": self.allocation,
            "evolution": self.evolution,
            "population": self.population,
            "cluster": self.cluster,
            "target": self.target,
            "mode": self.mode,
            "growth": self.growth,
            "timing": self.timing,
            "mean": {name: getattr(self, name) for name in AVERAGES},
            "slots": [asdict(slot) for slot in self.slots],
            "batch_sizes": self.batch_sizes(),
            "repetitions": [asdict(each) for each in self.repetitions],
        }


def on_common_ground(summaries: Sequence[PopulationSummary]) -> list[PopulationSummary]:
    """Return summaries with a common lower bound per population, cluster and seed: the smallest of them.

    Under evolution, or with a target, the work depends on the allocation. Relative to its own work, one that
    does more would look better.
    """
    least: dict[tuple[object, ...], float] = {}
    for summary in summaries:
        for each in summary.repetitions:
            key = (*_ground(summary), each.seed)
            least[key] = min(each.lower_bound_s, least.get(key, each.lower_bound_s))
    return [
        replace(
            summary,
            repetitions=tuple(
                replace(each, lower_bound_s=least[*_ground(summary), each.seed])
                for each in summary.repetitions
            ),
        )
        for summary in summaries
    ]


def at_points(points: Sequence[str], summaries: Sequence[PopulationSummary]) -> list[PopulationSummary]:
    """Return summaries with a common lower bound at each point of a grid."""
    found = list(summaries)
    for numbers in grouped((point, number) for number, point in enumerate(points)).values():
        for number, summary in zip(numbers, on_common_ground([found[n] for n in numbers]), strict=True):
            found[number] = summary
    return found


def _ground(summary: PopulationSummary) -> tuple[object, ...]:
    return (
        summary.population, summary.evolution, summary.growth, summary.cluster, summary.slots, summary.target,
        summary.mode, summary.repetitions[0].deadline_s,
    )  # fmt: skip


AVERAGES = (
    "makespan_s", "lower_bound_s", "ratio", "decisions_per_s", "best_accuracy", "final_accuracy",
    "to_target_s", "best_three", "test_accuracy", "gpu_s", "growths",
)  # fmt: skip


def mean(values: Iterable[float]) -> float:
    """Return the mean of one value or more."""
    found = list(values)
    return sum(found) / len(found)


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there are none."""
    known = [value for value in values if value is not None]
    return mean(known) if known else None


def _together(uses: Sequence[SlotUse]) -> SlotUse:
    whole = SlotUse()
    for field in fields(SlotUse):
        values = [getattr(use, field.name) for use in uses]
        setattr(whole, field.name, sum(values) if field.name in ("lists", "parts") else mean(values))
    return whole


Row = Sequence[str]
SEED = ("seed", "run time [s]", "÷ lower bound")
SLOT = (
    "slot", "node", "device", "speed", "computing [s]", "communicating [s]", "lost [s]", "idle",
    "assignments", "intervals",
)  # fmt: skip


def markdown(summary: PopulationSummary) -> str:
    """Return the results of one allocation as Markdown: averages, repetitions, slots, batch sizes."""
    sections = [
        f"# {summary.allocation}",
        f"{summary.population}, evolution: {summary.evolution}{_growth(summary)}, on "
        f"{summary.cluster}{_timed(summary)}",
        "## Averages over the repetitions",
        listed(_averages(summary)),
        "## Repetitions",
        ruled((*SEED, f"best {summary.metric_name}", "clones", "stopped", "placements"), _seeds(summary)),
        "## Slots (means over the repetitions; assignments and intervals added up)",
        ruled(SLOT, _slots(summary)),
    ]
    sizes = summary.batch_sizes()
    if sizes:
        sections += ["## Batch sizes used, and steps with them", listed(_sizes(sizes))]
    return "\n\n".join(sections) + "\n"


def comparison(runs: Sequence[tuple[str, PopulationSummary]]) -> str:
    """Return a table of allocations, one line each; each comes with its point of a grid."""
    if all(summary.has_deadline for _, summary in runs):
        return _at_deadline(runs)
    measured = any(summary.best_accuracy is not None for _, summary in runs)
    header = ["allocation", "makespan [s]", "lower bound [s]", "ratio", "idle", "clones", "decisions/s"]
    names = dict.fromkeys(f"best {summary.metric_name}" for _, summary in runs)
    rows = [header + [" or ".join(names)] * measured]
    points, summaries = zip(*runs, strict=True)
    for point, summary in zip(points, at_points(points, summaries), strict=True):
        name = f"{point} {summary.allocation}".strip()
        rows.append(_compared(name, summary) + [summary.shown(summary.best_accuracy)] * measured)
    timings = dict.fromkeys(filter(None, (summary.timing for summary in summaries)))
    return "\n".join([*aligned(rows), *(f"step times {timing}" for timing in timings)])


def _timed(summary: PopulationSummary) -> str:
    return f"; step times {summary.timing}" if summary.timing else ""


def _at_deadline(runs: Sequence[tuple[str, PopulationSummary]]) -> str:
    """Return a table of what was reached at the deadline, and where the seconds come from."""
    rows = [
        ["allocation", "growth", "best at the deadline", "best three", "test", "growths", "GPU [s]", "idle"]
    ]
    for point, each in runs:
        name = f"{point} {each.allocation}".strip()
        reached = map(each.shown, (each.final_accuracy, each.best_three, each.test_accuracy))
        used = "-" if each.gpu_s is None else f"{each.gpu_s:,.2f}"
        rows.append([name, each.growth, *reached, f"{each.growths:,.1f}", used, f"{each.idle:.1%}"])
    timings = dict.fromkeys(each.timing for _, each in runs if each.timing)
    return "\n".join([*aligned(rows, left=2), *(f"step times {timing}" for timing in timings)])


def listed(items: Iterable[tuple[str, str]]) -> str:
    """Return a list in Markdown."""
    return "\n".join(f"- {name}: {value}" for name, value in items)


def ruled(header: Row, rows: Iterable[Row]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _growth(summary: PopulationSummary) -> str:
    return f", growth: {summary.growth}" if summary.growth != "never" else ""


def _averages(summary: PopulationSummary) -> Iterable[tuple[str, str]]:
    yield "run time", f"{summary.makespan_s:,.2f} s"
    yield "lower bound", f"{summary.lower_bound_s:,.2f} s"
    yield "ratio", f"{summary.ratio:.3f}"
    if summary.best_accuracy is not None:
        name = f"best {summary.metric_name}"
        yield name, summary.shown(summary.best_accuracy)
        yield f"{name} in the end", summary.shown(summary.final_accuracy)
    if summary.to_target_s is not None:
        yield "time to the target", f"{summary.to_target_s:,.2f} s"
    if summary.has_deadline:
        yield "best three at the deadline", summary.shown(summary.best_three)
        yield "test accuracy of the best at the deadline", summary.shown(summary.test_accuracy)
        yield "seconds of slots in use", f"{summary.gpu_s or 0.0:,.2f} s"
    if summary.growths:
        yield "growths", f"{summary.growths:,.1f}"
    yield "clones", f"{summary.clones:,.1f}"
    yield (
        "assignments",
        f"{mean(sum(slot.lists for slot in each.slots) for each in summary.repetitions):,.1f}",
    )
    yield "placements", f"{mean(each.decisions for each in summary.repetitions):,.1f}"
    yield "placements per second of run time", f"{summary.decisions_per_s:,.0f}"


def _seeds(summary: PopulationSummary) -> Iterable[Row]:
    for each in summary.repetitions:
        ratio = each.makespan_s / each.lower_bound_s
        counts = (str(each.clones), str(each.stopped), str(each.decisions))
        best = summary.shown(each.best_accuracy)
        yield (str(each.seed), f"{each.makespan_s:,.2f}", f"{ratio:.3f}", best, *counts)


def _slots(summary: PopulationSummary) -> Iterable[Row]:
    for number, (slot, use) in enumerate(zip(summary.slots, summary.slot_use(), strict=True)):
        seconds = (f"{value:,.2f}" for value in (use.computing_s, use.communicating_s, use.lost_s))
        counts = (f"{use.idle_share:.1%}", f"{use.lists:,}", f"{use.parts:,}")
        yield (str(number), slot.node, slot.device, f"{slot.speed:g}", *seconds, *counts)


def _sizes(sizes: dict[str, dict[str, int]]) -> Iterable[tuple[str, str]]:
    for node, steps in sizes.items():
        yield node, ", ".join(f"{size} ({count:,})" for size, count in steps.items())


def _compared(name: str, summary: PopulationSummary) -> list[str]:
    times = (f"{summary.makespan_s:,.2f}", f"{summary.lower_bound_s:,.2f}", f"{summary.ratio:.3f}")
    return [name, *times, f"{summary.idle:.1%}", f"{summary.clones:,.1f}", f"{summary.decisions_per_s:,.0f}"]

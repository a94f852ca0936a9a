"""Recordings as text: what was recorded, what is missing, and whether changing a network pays."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rota.core.arrays import Floats
from rota.core.grouped import grouped
from rota.core.text import aligned
from rota.recordings.curve import Curves
from rota.recordings.folder import Provenance
from rota.recordings.gains import rows as growth_rows
from rota.recordings.growth import GrowthTree, said
from rota.recordings.library import FoundRecording, Library, models
from rota.recordings.profile import Profile, Profiles
from rota.recordings.tree import Tree, written_as


@dataclass(frozen=True, slots=True, eq=False)
class Gain:
    """A summary of one tree; accuracies are those at the end of the budget."""

    model: str
    scenario: str
    start_s: float
    budget_s: float
    seed: int
    never: float
    """Accuracy of the sequence that changes nothing."""
    adapting: Floats
    """Accuracies of all other sequences."""
    best: tuple[str, ...]
    """Actions of the best sequence."""

    @property
    def mean(self) -> float:
        """The mean accuracy of sequences with changes; NaN if there are none."""
        return float(np.mean(self.adapting)) if len(self.adapting) else math.nan

    @property
    def top(self) -> float:
        """The highest accuracy of all sequences."""
        return float(np.max(self.adapting, initial=self.never))

    @property
    def share_above(self) -> float:
        """The share of sequences with changes that end above the one without; NaN if there are none."""
        return float(np.mean(self.adapting > self.never)) if len(self.adapting) else math.nan


def gain(tree: Tree) -> Gain:
    """Return the summary of a tree; the accuracy of a failed training counts as 0."""
    found = {each: 0.0 if math.isnan(a) else a for each, a in tree.accuracies().items()}
    best = max(found, key=found.__getitem__)
    others = np.array([accuracy for sequence, accuracy in found.items() if sequence != tree.never])
    return Gain(
        tree.model,
        tree.scenario,
        tree.start_s,
        tree.budget_s,
        tree.seed,
        found[tree.never],
        others,
        tuple(tree.actions[action] for action in best),
    )


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise of an accuracy between seeds: standard deviations."""

    whole: float
    """Total standard deviation."""
    apart: float
    """Standard deviation of the part that differs between sequences of a tree, which affects rankings."""


def noise(trees: Sequence[Tree]) -> Noise | None:
    """Return the noise between trees that differ in their seeds only; None if there are no two such trees."""
    whole, apart = [], []
    for first, second in combinations(trees, 2):
        if first.seed != second.seed and but_for_seed(first) == but_for_seed(second):
            one, other = first.accuracies(), second.accuracies()
            differences = np.array([one[each] - other[each] for each in one if each in other])
            differences = differences[~np.isnan(differences)]
            whole.append(np.mean(differences**2) / 2)  # the variance of a difference is twice that of one run
            apart.append(np.var(differences) / 2)
    if not whole:
        return None
    return Noise(math.sqrt(np.mean(whole)), math.sqrt(np.mean(apart)))


def but_for_seed(tree: Tree) -> tuple[object, ...]:
    """Return a key that is equal for trees that differ in their seeds only."""
    asked = tree.details.get("asked")
    return tree.model, tree.data, tree.start_s, tree.budget_s, tree.actions, tree.decisions, asked


def by_model(trees: Iterable[Tree]) -> dict[str, list[Tree]]:
    """Return model → its complete trees by time and seed; a model on other data counts as another."""
    whole = [tree for tree in trees if not tree.missing()]
    whole.sort(key=lambda tree: (tree.model, tree.data, tree.start_s, tree.seed))
    return grouped(zip(models(whole), whole, strict=True))


def by_scenario(trees: Iterable[Tree]) -> dict[str, list[Tree]]:
    """Return scenario → its trees of all seeds, for trees of one model."""
    return grouped((tree.scenario, tree) for tree in trees)


def table(trees: Iterable[Tree]) -> str:
    """Return a line per tree, and the noise of each scenario with several seeds."""
    groups = by_model(trees)
    width = max([10, *map(len, groups)])
    heads = "seed   never  adapting (mean, best)   above never   best sequence"
    lines = [f"{'model':<{width}} {'scenario':<13} {heads}"]
    for model, group in groups.items():
        name = f"{model:<{width}}"
        for each in map(gain, group):
            lines.append(
                f"{name} {each.scenario:<13} {each.seed:>4}  {each.never:6.1%}  {_said(each.mean, '8.1%')}"
                f"  {each.top:6.1%}        {_said(each.share_above, '6.0%')}          {', '.join(each.best)}"
            )
        for scenario, alike in by_scenario(group).items():
            found = noise(alike)
            if found:
                lines.append(
                    f"{name} {scenario:<13} another seed changes an accuracy by ±{found.whole:.1%}, "
                    f"of which ±{found.apart:.1%} is not the same for all sequences"
                )
    return "\n".join(lines)


def _said(share: float, form: str) -> str:
    """Return a formatted share, or a dash of the same width for NaN."""
    text = f"{share:{form}}"
    return f"{'–':>{len(text)}}" if math.isnan(share) else text


MOST_NAMED = 4
"""Number of missing things to name before the rest is only counted."""

Row = Sequence[str]


def text(library: Library) -> str:
    """Return a description of all recordings, with a table for each shape."""
    if not (len(library) or library.problems or library.unfinished):
        return f"{library.folder}: no recordings"
    parts = [f"{library.folder}: {contents(library)}"]
    parts += [_trees(library.trees)] if library.trees else []
    parts += [_growth(library.growth)] if library.growth else []
    parts += [_curves(library.curves)] if library.curves else []
    parts += [_profiles(library.profiles)] if library.profiles else []
    going = (f"{name}: {counted(done, 'piece')} done" for name, done in library.unfinished.items())
    parts += ["\n  ".join(("being recorded", *going))] if library.unfinished else []
    parts += ["\n  ".join(("problems", *library.problems))] if library.problems else []
    return "\n\n".join(parts)


def contents(library: Library) -> str:
    """Return the counts: `10 trees, 1 grid of curves, 1 set of profiles`."""
    parts = [
        counted(len(library.trees), "tree"),
        *([counted(len(library.growth), "growth tree")] if library.growth else []),
        counted(len(library.curves), "grid of curves", "grids of curves"),
        counted(len(library.profiles), "set of profiles", "sets of profiles"),
    ]
    broken = "damaged or unfinished"
    parts += [counted(len(library.problems), broken, broken)] if library.problems else []
    return ", ".join(parts)


def counted(number: int, one: str, more: str = "") -> str:
    """Return a counted noun: `1 tree`, `10 trees`."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def absent_scenarios(trees: Iterable[Tree]) -> list[str]:
    """Return the scenarios of one model that another lacks: `ConvNet3 on cifar10: late`."""
    trees = list(trees)
    scenarios = dict.fromkeys(tree.scenario for tree in trees)
    models = dict.fromkeys((tree.model, tree.data) for tree in trees)
    there = {(tree.model, tree.data, tree.scenario) for tree in trees}
    return [f"{m} on {d}: {s}" for m, d in models for s in scenarios if (m, d, s) not in there]


def unmeasured(profiles: Profiles) -> list[str]:
    """Return what was measured on one device, alone, and not on another of the same recording."""
    alone = [row for row in profiles.rows if not row.beside]
    there = {(row.device, *_which(row)) for row in alone}
    every = dict.fromkeys(_which(row) for row in alone)
    return [
        f"{model} batch {batch} × {gang} {placement} on {device}"
        for device in profiles.devices
        for model, batch, gang, placement in every
        if (device, model, batch, gang, placement) not in there
    ]


def _which(row: Profile) -> tuple[str, int, int, str]:
    return row.model, row.batch_size, row.gang, row.placement


def _trees(held: Sequence[FoundRecording[Tree]]) -> str:
    header = (
        "model",
        "data",
        "scenario",
        "seed",
        "start",
        "budget",
        "sequences",
        "best",
        "",
        "mean",
        "never",
        "",
    )
    rows = [header, *(_tree_row(each.what) for each in held)]
    lines = ["trees", *_indented(aligned(rows, left=3))]
    absent = absent_scenarios(each.what for each in held)
    lines += [f"  missing: {_named(absent)}"] if absent else []
    for each in held:
        lines += [f"  missing in {each.name}: {_named(_parts(each.what))}"] if each.what.missing() else []
    return "\n".join((*lines, *_origins(each.what.provenance for each in held)))


def _tree_row(tree: Tree) -> Row:
    found = {s: a for s, a in tree.accuracies().items() if not math.isnan(a)}
    sequences = f"{len(tree.sequences())}/{len(tree.all_sequences)}"
    about = (tree.model, tree.data or "?", tree.scenario, str(tree.seed))
    times = (f"{tree.start_s:,.1f} s", f"{tree.budget_s:,.1f} s")
    if not found:
        return (*about, *times, sequences, "–", "", "–", "–", "")
    best = max(found, key=lambda sequence: found[sequence])
    never = found.get(tree.never)
    said = ("–", "") if never is None else (f"{never:.1%}", f"rank {tree.ranks[tree.never]}")
    mean = f"{np.mean(list(found.values())):.1%}"
    return (*about, *times, sequences, f"{found[best]:.1%}", written_as(best), mean, *said)


def _parts(tree: Tree) -> list[str]:
    return [written_as(prefix) or "the start" for prefix in tree.missing()]


def _growth(held: Sequence[FoundRecording[GrowthTree]]) -> str:
    trees = [each.what for each in held]
    lines = ["growth trees", *_indented(aligned(growth_rows(trees), left=2))]
    for each in held:
        missing = [said(prefix) for prefix in each.what.missing()]
        lines += [f"  missing in {each.name}: {_named(missing)}"] if missing else []
    return "\n".join((*lines, *_origins(tree.provenance for tree in trees)))


def _curves(held: Sequence[FoundRecording[Curves]]) -> str:
    header = ("model", "data", "settings", "intervals", "time", "at the end", "hyper-parameters")
    rows = [header, *(_curves_row(each.what) for each in held)]
    lines = ["curves", *_indented(aligned(rows, left=2, last_left=True))]
    for each in held:
        missing, failed = each.what.missing(), list(each.what.failed)
        lines += [f"  missing in {each.name}: {_named(missing)}"] if missing else []
        lines += [f"  failed in {each.name}: {_named(failed)}"] if failed else []
    return "\n".join((*lines, *_origins(each.what.provenance for each in held)))


def _curves_row(curves: Curves) -> Row:
    there = curves.settings
    planned = len(dict.fromkeys((*curves.planned, *there)))
    lengths = sorted({len(setting) for setting in there.values()})
    intervals = f"{lengths[0]}–{lengths[-1]}" if len(lengths) > 1 else f"{lengths[0] if lengths else 0}"
    seconds = [setting.seconds.sum() for setting in there.values() if len(setting)]
    time = f"{sum(seconds):,.0f} s" if seconds and not math.isnan(sum(seconds)) else "–"
    hyper = ", ".join(f"{name}: {_span(curves, name)}" for name in curves.hyper)
    return curves.model, curves.data or "?", f"{len(there)}/{planned}", intervals, time, _ends(curves), hyper


def _ends(curves: Curves) -> str:
    """Return how the settings compare at their ends."""
    metric = curves.main_metric
    found = [setting.metrics[metric] for setting in curves.settings.values() if metric in setting.metrics]
    ends = [float(values[-1]) for values in found if len(values) and not math.isnan(values[-1])]
    if not ends:
        return "–"
    form = ".1%" if metric == "accuracy" else ".4g"
    return f"{metric} {min(ends):{form}} to {max(ends):{form}}"


def _span(curves: Curves, name: str) -> str:
    values = list(dict.fromkeys(hyper[name] for hyper in curves.tried))
    numbers = sorted(value for value in values if not isinstance(value, str))
    if len(values) > MOST_NAMED and len(numbers) == len(values):
        return f"{len(values)} from {numbers[0]:g} to {numbers[-1]:g}"
    return " ".join(f"{value:g}" if not isinstance(value, str) else value for value in values)


def _profiles(held: Sequence[FoundRecording[Profiles]]) -> str:
    header = (
        "recording",
        "model",
        "device",
        "measured",
        "in pairs",
        "gangs",
        "stages",
        "iteration",
        "batch sizes",
    )
    rows = [header, *(row for each in held for row in _profile_rows(each))]
    lines = ["profiles", *_indented(aligned(rows, left=3, last_left=True))]
    for each in held:
        missing = unmeasured(each.what)
        lines += [f"  missing in {each.name}: {_named(missing)}"] if missing else []
    return "\n".join((*lines, *_origins(each.what.provenance for each in held)))


def _profile_rows(held: FoundRecording[Profiles]) -> list[Row]:
    groups = grouped(((row.model, row.device), row) for row in held.what.rows)
    return [_profile_row(held.name, model, device, rows) for (model, device), rows in groups.items()]


def _profile_row(name: str, model: str, device: str, rows: Sequence[Profile]) -> Row:
    alone = [row for row in rows if not row.beside]
    times_ms = [1000.0 * row.iteration_s for row in alone]
    measured = [stage for stage in ("load", "compute", "synchronise") if _has(alone, stage)]
    stages = "all" if len(measured) == 3 else " ".join(measured) or "none"
    batches = _numbers(row.batch_size for row in alone)
    time = f"{min(times_ms):,.1f}–{max(times_ms):,.1f} ms" if times_ms else "–"
    counts = (f"{len(alone):,}", f"{len(rows) - len(alone):,}", _numbers(row.gang for row in alone))
    return name, model, device, *counts, stages, time, batches


def _has(rows: Sequence[Profile], stage: str) -> bool:
    return any(not math.isnan(getattr(row, f"{stage}_s")) for row in rows)


def _numbers(values: Iterable[int]) -> str:
    found = sorted({value for value in values if value})
    if len(found) > 2 * MOST_NAMED:
        return f"{len(found)} from {found[0]:,} to {found[-1]:,}"
    return " ".join(map(str, found)) or "–"


def _origins(found: Iterable[Provenance]) -> list[str]:
    """Return the distinct origins, without times and seeds."""
    origins = grouped(
        ((each.device, *each.libraries.values(), each.commit, each.rota, each.command, each.note), each)
        for each in found
    )
    lines = []
    for same in origins.values():
        first = same[0]
        times = sorted(each.recorded_at for each in same)
        when = times[0] if len(same) == 1 else f"{counted(len(same), 'recording')} until {times[-1]}"
        parts = (first.made_with, when, first.command, first.note)
        lines.append("  from: " + " · ".join(part for part in parts if part))
    return lines


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]

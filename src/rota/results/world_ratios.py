"""How schedulers compare on worlds: their results, and ratios to baselines with intervals over worlds."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rota.core.intervals import mean_interval
from rota.core.text import aligned

BASELINES = ("tiresias", "srtf")
MEASURES = ("avg_jct_s", "p99_jct_s", "slowdown")
HEADINGS = {"avg_jct_s": "average JCT", "p99_jct_s": "p99", "slowdown": "slowdown"}


@dataclass(frozen=True, slots=True)
class WorldResult:
    """One scheduler on one world."""

    world: str
    family: str
    contention: float
    scheduler: str
    knows: str
    avg_jct_s: float
    p99_jct_s: float
    slowdown: float
    """Mean of completion time ÷ time alone, of jobs of at least 10 s."""
    alone_s: float
    """Mean time alone: no scheduler has a smaller mean completion time."""


@dataclass(frozen=True, slots=True)
class MeasuredRatio:
    """The ratio of a scheduler to a baseline: the geometric mean over worlds, and its 95 % interval."""

    scheduler: str
    knows: str
    baseline: str
    measure: str
    part: str
    """Worlds that it is of: all, those of a family, or those of a contention."""
    worlds: int
    mean: float
    low: float
    high: float


def ratios(results: Iterable[WorldResult]) -> list[MeasuredRatio]:
    """Return the ratios to each baseline: of all worlds, then by family, then by contention."""
    by_world: dict[str, dict[str, WorldResult]] = {}
    for each in results:
        by_world.setdefault(each.world, {})[each.scheduler] = each
    worlds = list(by_world.values())
    if not worlds:
        return []
    first = [next(iter(world.values())) for world in worlds]
    parts: dict[str, Callable[[WorldResult], bool]] = {"all": lambda each: True}
    for family in dict.fromkeys(each.family for each in first):
        parts[family] = lambda each, family=family: each.family == family  # type: ignore[misc]
    for level in sorted({each.contention for each in first}):
        parts[f"contention {level:g}"] = lambda each, level=level: each.contention == level  # type: ignore[misc]
    found = []
    for part, belongs in parts.items():
        chosen = [world for world, head in zip(worlds, first, strict=True) if belongs(head)]
        for name, head in worlds[0].items():
            for baseline in BASELINES:
                for measured in MEASURES:
                    logs = [
                        math.log(getattr(world[name], measured) / getattr(world[baseline], measured))
                        for world in chosen
                    ]
                    mean, low, high = (math.exp(each) for each in mean_interval(logs))
                    found.append(
                        MeasuredRatio(
                            name, head.knows, baseline, measured, part, len(chosen), mean, low, high
                        )
                    )
    return found


def text(found: Sequence[MeasuredRatio]) -> str:
    """Return a table per part: ratios with their intervals."""
    lines = []
    for part in dict.fromkeys(each.part for each in found):
        here = [each for each in found if each.part == part]
        header = [
            "scheduler",
            *(f"{HEADINGS[m]} ÷ tiresias" for m in MEASURES),
            "average JCT ÷ srtf",
            "knows",
        ]
        rows: list[tuple[str, ...]] = [tuple(header)]
        for name in dict.fromkeys(each.scheduler for each in here):
            own = {(each.baseline, each.measure): each for each in here if each.scheduler == name}
            cells = [_cell(own["tiresias", measure]) for measure in MEASURES]
            rows.append((name, *cells, _cell(own["srtf", "avg_jct_s"]), next(iter(own.values())).knows))
        lines += [f"{part}: {here[0].worlds} worlds", *aligned(rows), ""]
    return "\n".join(lines[:-1])


def _cell(ratio: MeasuredRatio) -> str:
    if math.isnan(ratio.low):
        return f"{ratio.mean:.3f}"
    return f"{ratio.mean:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"

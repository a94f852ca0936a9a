"""How good a placement agent is, as a table to read."""

from collections.abc import Sequence

from rota.core.arrays import Floats
from rota.learning.placement.goal import time_to
from rota.learning.placement.outcome import AGENT, BEHIND, Comparison

SHUFFLED = f"{AGENT}, shuffled"


def table(found: Comparison) -> str:
    """A line per allocation, and what the agent is worth beside the others."""
    costs = [f"{cost:g}" for cost in found.dispatches]
    head = [f"{time_to(found.goal)} ÷ lower bound", *costs, "all", "worst", "takes longer"]
    lines = [head]
    for name in found.names:
        more = "" if name == AGENT else f"{found.longer(name):+.1%}"
        parts = [found.at(cost).ratios(name) for cost in found.dispatches]
        lines.append(_line(name, parts, found.ratios(name), more))
    parts = [found.at(cost).shuffled for cost in found.dispatches]
    lines.append(_line(SHUFFLED, parts, found.shuffled, f"{found.shuffling_costs:+.1%}"))
    return f"{_aligned(lines)}\n{against_best(found)}"


def against_best(found: Comparison) -> str:
    """`learned beside the best other rule of each of 240 cases: …`."""
    far = int((found.behind > BEHIND).sum())
    return (
        f"{AGENT} beside the best other rule of each of {len(found.tried)} cases: takes "
        f"{found.behind.mean():+.1%} on average, {found.behind.max():+.1%} at worst; "
        f"more than {BEHIND:.0%} longer in {far}"
    )


def _line(name: str, parts: Sequence[Floats], whole: Floats, more: str) -> list[str]:
    return [
        name,
        *(f"{part.mean():.3f}" for part in parts),
        f"{whole.mean():.3f}",
        f"{whole.max():.3f}",
        more,
    ]


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in lines)
    return "\n".join("   ".join(row).rstrip() for row in rows)

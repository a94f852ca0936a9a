"""What was evaluated, as a table to read."""

from collections.abc import Sequence

from rota.learning.outcome import Others, Row
from rota.recordings.models import models


def table(rows: Sequence[Row]) -> str:
    """A line per scenario: the agent, and what others would have reached; the unseen are marked."""
    called = models([row.agent for row in rows])
    width = max([10, *map(len, called)])
    lines = [_head(width)]
    for model, (found, others, seen) in zip(called, rows, strict=True):
        seed = f" ({found.seed})" if found.seed else ""
        where = f"{model:<{width}} {found.scenario + seed + ('' if seen else ' *'):<15}"
        reached = f"{found.rank:>5}/{found.of:<3} {found.headroom:>9.2f} {found.accuracy:>9.2%}"
        lines.append(f"{where} {reached} {_others(others)}  {', '.join(found.changes)}")
    mean = sum(row.agent.headroom for row in rows) / len(rows)
    legend = "" if all(row.seen for row in rows) else "  * unseen"
    lines.append(f"{'mean':<{width + 16}} {'':>9} {mean:>9.2f}{legend}")
    return "\n".join(lines)


def brief(rows: Sequence[Row]) -> str:
    """`  convnet2/early rank 3/64, convnet2/late rank 12/64; headroom 0.71`."""
    called = models([row.agent for row in rows])
    ranks = ", ".join(
        f"{model}/{row.agent.scenario} rank {row.agent.rank}/{row.agent.of}"
        for model, row in zip(called, rows, strict=True)
    )
    return f"  {ranks}; headroom {sum(row.agent.headroom for row in rows) / len(rows):.2f}"


def _head(width: int) -> str:
    return (
        f"{'model':<{width}} {'scenario':<15} {'rank':>9} {'headroom':>9} {'accuracy':>9} "
        f"{'never':>7} {'random':>7} {'fixed':>7} {'oracle':>7}  sequence"
    )


def _others(others: Others) -> str:
    fixed = "–" if others.fixed is None else f"{others.fixed:.2%}"
    return f"{others.never:>7.2%} {others.random:>7.2%} {fixed:>7} {others.oracle:>7.2%}"

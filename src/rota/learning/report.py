"""What was evaluated, as a table to read."""

from collections.abc import Sequence

from rota.learning.outcome import Others, Row

HEAD = (
    f"{'model':<10} {'scenario':<15} {'rank':>9} {'headroom':>9} {'accuracy':>9} "
    f"{'never':>7} {'random':>7} {'fixed':>7} {'oracle':>7}  sequence"
)


def table(rows: Sequence[Row]) -> str:
    """A line per scenario: the agent, and what others would have reached; the unseen are marked."""
    lines = [HEAD]
    for found, others, seen in rows:
        seed = f" ({found.seed})" if found.seed else ""
        where = f"{found.model:<10} {found.scenario + seed + ('' if seen else ' *'):<15}"
        reached = f"{found.rank:>5}/{found.of:<3} {found.headroom:>9.2f} {found.accuracy:>9.2%}"
        lines.append(f"{where} {reached} {_others(others)}  {', '.join(found.changes)}")
    mean = sum(row.agent.headroom for row in rows) / len(rows)
    lines.append(
        f"{'mean':<26} {'':>9} {mean:>9.2f}" + ("" if all(row.seen for row in rows) else "  * unseen")
    )
    return "\n".join(lines)


def brief(rows: Sequence[Row]) -> str:
    """`  convnet2/early rank 3/64, convnet2/late rank 12/64; headroom 0.71`."""
    ranks = ", ".join(
        f"{row.agent.model}/{row.agent.scenario} rank {row.agent.rank}/{row.agent.of}" for row in rows
    )
    return f"  {ranks}; headroom {sum(row.agent.headroom for row in rows) / len(rows):.2f}"


def _others(others: Others) -> str:
    fixed = "–" if others.fixed is None else f"{others.fixed:.2%}"
    return f"{others.never:>7.2%} {others.random:>7.2%} {fixed:>7} {others.oracle:>7.2%}"

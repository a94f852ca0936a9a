"""Verdicts of a report, and whether a command was a real run."""

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rota.figures.page import SHORT, unit_for
from rota.report.blocks import Colour, Glance


def is_real(command: str) -> bool:
    """Whether a run was made by `rota run`, not simulated."""
    words = [word for word in shlex.split(command)[1:] if not word.startswith("-")]
    return words[:1] == ["run"]


ALIKE = 1.005
"""Largest ratio of times that counts as equally good."""
TWICE = 1.995
"""Ratio from which times are told as a multiple."""


Bar = tuple[str, list[str], float, str]


class Standings(NamedTuple):
    """Policies, and how long each took."""

    names: Sequence[str]
    values: Sequence[float]

    @property
    def best(self) -> int:
        """Position of the least value."""
        return min(range(len(self.values)), key=self.values.__getitem__)

    @property
    def by_value(self) -> list[int]:
        """Positions of all values, the least first."""
        return sorted(range(len(self.values)), key=self.values.__getitem__)


def bars(standings: Standings, colours: Sequence[list[str]], said: Callable[[float], str]) -> list[Bar]:
    """Return a bar for each policy, the best first: name, colour, value, and its text."""
    names, values = standings
    return [(names[at], colours[at], values[at], said(values[at])) for at in standings.by_value]


def glance(standings: Standings, colours: Sequence[Colour], says: str) -> Glance:
    """Return the best policy, what it `says` of it, and how the others compare; alone it has won nothing."""
    best, several = standings.best, len(standings.names) > 1
    found = bars(standings, colours, span) * several
    return Glance(standings.names[best], colours[best], says, others(standings), found, won=several)


def others(standings: Standings) -> str:
    """Return `srsf takes 1.0% longer, fifo 4.6 times as long`: the next and the last, if any."""
    least = standings.values[standings.best]
    if least <= 0.0:
        return ""
    beaten = [(standings.names[at], standings.values[at] / least) for at in standings.by_value[1:]]
    alike = [name for name, ratio in beaten if ratio <= ALIKE]
    worse = [each for each in beaten if each[1] > ALIKE]
    said = [f"{_listed(alike)} {'does' if len(alike) == 1 else 'do'} as well"] if alike else []
    if worse:
        said.append(f"{worse[0][0]} takes {longer(worse[0][1])}")
    if len(worse) > 1:
        said.append(f"{worse[-1][0]} {longer(worse[-1][1])}")
    return ", ".join(said)


def tally(winners: Sequence[str]) -> str:
    """Return `learned is best in 4 of 9 comparisons, finish in 3, eta in 2`; empty for fewer than three."""
    if len(winners) < 3:
        return ""
    (first, wins), *rest = Counter(winners).most_common()
    more = "".join(f", {name} in {count}" for name, count in rest)
    return f"{first} is best in {wins} of {len(winners)} comparisons{more}."


def span(duration_s: float) -> str:
    """Return a duration with three digits: `2.28 h`."""
    unit = unit_for(duration_s)
    amount = duration_s / unit.seconds
    text = f"{amount:,.0f}" if amount >= 99.95 else f"{amount:#.3g}"
    return f"{text} {SHORT[unit.name]}"


def longer(ratio: float) -> str:
    """Return a ratio in words: `3.1% longer`, or `2.4 times as long`."""
    if ratio >= TWICE:
        return f"{ratio:.1f} times as long" if ratio < 9.95 else f"{ratio:,.0f} times as long"
    return f"{ratio - 1.0:.1%} longer" if ratio < 1.1 else f"{ratio - 1.0:.0%} longer"


def _listed(names: Sequence[str]) -> str:
    """Return names in words: `a`, `a and b`, `a, b and 3 more`."""
    if len(names) <= 2:
        return " and ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2} more"

"""Seconds as people say them: axes in minutes, hours or days, and labels like `2.5 days`."""

from typing import NamedTuple

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0


class Unit(NamedTuple):
    """What the numbers along an axis are."""

    name: str
    seconds: float


SECONDS, MINUTES = Unit("seconds", 1.0), Unit("minutes", MINUTE_S)
HOURS, DAYS = Unit("hours", HOUR_S), Unit("days", DAY_S)
UNITS = (SECONDS, MINUTES, HOURS, DAYS)
SHORT = {"seconds": "s", "minutes": "min", "hours": "h", "days": "days"}

LOG_TICKS = {
    1.0: "1 s", 10.0: "10 s", MINUTE_S: "1 min", 10 * MINUTE_S: "10 min", HOUR_S: "1 h",
    6 * HOUR_S: "6 h", DAY_S: "1 day", 7 * DAY_S: "1 week", 30 * DAY_S: "30 days", 365 * DAY_S: "1 year",
}  # fmt: skip
FEWEST_TICKS = 3


def unit_for(span_s: float) -> Unit:
    """The largest unit of which an axis over this span has more than two."""
    return next((unit for unit in reversed(UNITS) if span_s > 2 * unit.seconds), UNITS[0])


def said(duration_s: float) -> str:
    """At least two significant digits and a unit: `0.25 s`, `48 s`, `2.5 days`."""
    unit = unit_for(duration_s)
    amount = duration_s / unit.seconds
    text = f"{amount:.2g}" if amount < 9.95 else f"{amount:,.0f}"
    return f"{text} {SHORT[unit.name]}"


def log_ticks(low_s: float, high_s: float) -> dict[float, str]:
    """Where a logarithmic axis has its marks, and what they say; a short axis has more of them."""
    coarse = {at_s: label for at_s, label in LOG_TICKS.items() if low_s <= at_s <= high_s}
    if len(coarse) >= FEWEST_TICKS:
        return coarse
    fine = [10.0**power * digit for power in range(-6, 9) for digit in (1, 2, 5)]
    return {at_s: said(at_s) for at_s in fine if low_s <= at_s <= high_s}

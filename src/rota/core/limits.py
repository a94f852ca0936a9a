"""Limits of settings."""

import math

from rota.core.errors import ConfigError


def at_least(low: float, *, finite: bool = False, **values: float | None) -> None:
    """Raise ConfigError for the first of some settings that is below a limit; None is not given."""
    for name, value in values.items():
        if value is not None and not (value >= low and (not finite or value < math.inf)):
            raise ConfigError(f"{name} is {_said(value)}; it must be at least {_said(low)}")


def above(low: float, *, finite: bool = False, **values: float | None) -> None:
    """Raise ConfigError for the first of some settings that is not above a limit; None is not given."""
    for name, value in values.items():
        if value is not None and not (value > low and (not finite or value < math.inf)):
            end = " and finite" if value == math.inf else ""
            raise ConfigError(f"{name} is {_said(value)}; it must be above {_said(low)}{end}")


def _said(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

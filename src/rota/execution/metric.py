"""How good something is, as a number."""

from typing import Any

from rota.core.errors import InputError


def as_number(value: Any, how: str) -> float:
    """Return a metric as a float; an error that says where it comes from if it is no number."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        what = "nothing" if value is None else f"{str(value)[:60]!r}, a {type(value).__name__}"
        raise InputError(f"{how} {what}; it must be a number (NaN if nothing is measured)") from None

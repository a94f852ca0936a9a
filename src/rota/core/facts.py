"""What files of results, recordings and agents say of themselves, in JSON."""

import json
import re
from typing import Any

LARGEST = 2**63 - 1
"""No count, time or measurement is larger: an integer of 64 bits can hold it."""

HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of half a character: two of them may be one, one alone cannot be written."""


def parsed(text: str) -> Any:
    """What is written there; a ValueError if it is no JSON, or says NaN or Infinity, which JSON cannot."""
    try:
        found = json.loads(text, parse_constant=_refused)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if HALF.search(text):
        json.dumps(found, ensure_ascii=False).encode()  # a UnicodeEncodeError is a ValueError
    return found


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON has")

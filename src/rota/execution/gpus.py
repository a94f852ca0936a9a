"""Which GPUs of this machine a process may use."""

import os
import re
import subprocess
from pathlib import Path

LIST = ("nvidia-smi", "-L")
LISTS_S = 60.0
"""A driver that was asleep takes a while."""
AMD = Path("/dev/kfd")
"""There if GPUs are AMD's, which nothing lists everywhere."""


def is_missing(gpu: str) -> bool:
    """Return whether this machine is known not to have the GPU with this number or UUID.

    `CUDA_VISIBLE_DEVICES` hides those that it does not name.
    """
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        shown = [word.strip() for word in given.split(",") if word.strip()]
        if not shown or (all(map(str.isdecimal, [gpu, *shown])) and gpu not in shown):
            return True
    there = _listed()
    return there is not None and not any(
        name == gpu or (not gpu.isdecimal() and name.startswith(gpu)) for name in there
    )


def _listed() -> list[str] | None:
    """Numbers and UUIDs; None if there may be others."""
    if AMD.exists():
        return None
    try:
        text = subprocess.run(LIST, capture_output=True, text=True, timeout=LISTS_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        text = ""
    return [*re.findall(r"^GPU (\d+):", text, re.MULTILINE), *re.findall(r"UUID: ([\w-]+)", text)]

"""CPU seconds of a process and of all that it starts, looked up in /proc again and again."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LOOK_EVERY_S = 0.2
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Entry(NamedTuple):
    """A line of /proc: a process, and what it has used."""

    pid: int
    parent: int
    started: int
    """Tells it from a later process with the same number."""
    used_s: float


class CpuTime:
    """What ends between two looks is counted as of the look before."""

    def __init__(self, pid: int) -> None:
        self._family = {pid}
        self._used_s: dict[tuple[int, int], float] = {}

    def until_over(self, process: subprocess.Popen[bytes], at_most_s: float) -> float:
        """All of it; `TimeoutExpired` if it takes too long."""
        until_s = time.monotonic() + at_most_s
        while process.poll() is None:
            self.look()
            if time.monotonic() > until_s:
                raise subprocess.TimeoutExpired(process.args, at_most_s)
            time.sleep(LOOK_EVERY_S)
        return self.used_s

    @property
    def used_s(self) -> float:
        """As far as was seen."""
        return sum(self._used_s.values())

    def look(self) -> None:
        found = sorted(entries(), key=lambda entry: entry.started)  # parents first
        self._family &= {entry.pid for entry in found}
        for entry in found:
            if entry.pid in self._family or entry.parent in self._family:
                self._family.add(entry.pid)
                self._used_s[entry.pid, entry.started] = entry.used_s


def entries() -> Iterator[Entry]:
    """Of all processes; none where there is no /proc."""
    if sys.platform != "linux":
        return
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            used_s = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
            yield Entry(int(folder.name), int(fields[1]), int(fields[19]), used_s)

"""The controller of a sweep: it starts trials, records them, and stops those that ASHA prunes."""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any

from rota.core.errors import ConfigError
from rota.execution.checkpoints import SYNC_EVERY_S
from rota.execution.folder import last_of
from rota.execution.journal import Journal, JournalEntry, Line
from rota.sweeps.asha import ASHA, Rungs
from rota.sweeps.parcel import from_plain
from rota.sweeps.processes import TrialProcesses
from rota.sweeps.trial import SweepStatus, Trial

BEGAN, DRAWN, TRAIN, STARTED, LOGGED, ENDED = "began", "drawn", "train", "started", "logged", "ended"
JOURNAL = "journal.sqlite"


def folder_of(local_dir: Path, name: str) -> Path:
    """Return the folder of an experiment; raise ConfigError if its name cannot be a folder's."""
    fine = name[:1].isalnum() and all(letter.isalnum() or letter in "._+=@ -" for letter in name)
    if not fine or len(name) > 100 or name != name.strip() or ".." in name:
        raise ConfigError(
            f"experiment {name!r}: give a name of at most 100 letters, digits, '-', '_' and '.', no '..', "
            "a letter or digit first"
        )
    return local_dir / name


class Record:
    """The trials of a sweep, as recorded in its journal."""

    def __init__(self, things: Sequence[Any] | None = None) -> None:
        self.trials: list[Trial] = []
        self.metric: str | None = None
        self.mode: str | None = None
        self._things = things
        self._copies: Counter[str] = Counter()

    def apply(self, entry: JournalEntry) -> None:
        """Apply one entry."""
        getattr(self, f"_{entry.kind}")(entry.at_s, entry.body)

    def _began(self, at_s: float, body: dict[str, Any]) -> None:
        self.metric, self.mode = body["metric"], body["mode"]

    def _drawn(self, at_s: float, body: dict[str, Any]) -> None:
        trial = Trial(from_plain(body["cfg"], self._things), status=SweepStatus.SCHEDULED)
        self._copies[trial.trial_id] += 1
        trial.copy = self._copies[trial.trial_id]
        self.trials.append(trial)

    def _started(self, at_s: float, body: dict[str, Any]) -> None:
        """Start a trial; what it logged in an earlier attempt is lost."""
        trial = self.trials[body["trial"]]
        trial.status, trial.start_time = SweepStatus.RUNNING, datetime.fromtimestamp(at_s)
        trial.metrics.clear()

    def _train(self, at_s: float, body: dict[str, Any]) -> None:
        """Ignore the digest of the train function."""

    def _logged(self, at_s: float, body: dict[str, Any]) -> None:
        metrics = self.trials[body["trial"]].metrics
        for name, value in body["metrics"].items():
            metrics.setdefault(name, {})[body["iteration"]] = value

    def _ended(self, at_s: float, body: dict[str, Any]) -> None:
        trial = self.trials[body["trial"]]
        trial.status, trial.end_time = SweepStatus(body["status"]), datetime.fromtimestamp(at_s)
        trial.failure = body["failure"]


def about(asha: ASHA | None) -> dict[str, Any]:
    """Return the facts about a sweep, before there are trials."""
    return {"metric": asha and asha.metric, "mode": asha and asha.mode}


LOOK_S = 0.2
"""Seconds between two checks for dead processes whose pipes are still open."""
END_S = 0.005
"""Seconds between two checks whether a trial that ended has exited."""
TAIL = 4000
"""Number of characters kept of a dead trial's output."""


class Controller:
    """The owner of a sweep's journal while it runs."""

    def __init__(
        self,
        journal: Journal,
        record: Record,
        start: Callable[[int], TrialProcesses],
        output: Callable[[int], Path],
        rungs: Rungs | None,
    ) -> None:
        self.journal, self.record, self.rungs = journal, record, rungs
        self._start, self._output = start, output
        self._running: dict[int, TrialProcesses] = {}
        self._pruned: set[int] = set()
        self._selector = DefaultSelector()
        self._synced, self._next_sync_s = 0, 0.0
        """Number of entries on the disk, and the time of the next sync."""

    def run(self, at_once: int, between: Callable[[], None]) -> None:
        """Run all trials that have not ended, at most `at_once` at a time; stop them if interrupted."""
        waiting = deque(
            number for number, trial in enumerate(self.record.trials) if not trial.is_terminated()
        )
        try:
            while waiting or self._running:
                while waiting and len(self._running) < at_once:
                    self._begin(waiting.popleft())
                self._take_in(self._speaking())
                self._look_after()
                self._sync()
                between()
            self.journal.sync()
        finally:
            for number in list(self._running):
                self._running[number].tell_to_end()
            for number in list(self._running):
                self._close(number)
            self._selector.close()

    def _sync(self) -> None:
        """Sync the journal, if it is due."""
        if self.journal.count > self._synced and time.monotonic() >= self._next_sync_s:
            self._synced = self.journal.count
            self.journal.sync()
            self._next_sync_s = time.monotonic() + SYNC_EVERY_S

    def _begin(self, number: int) -> None:
        if self.rungs is not None:
            self.rungs.forget(number)
        self._keep([_line(STARTED, {"trial": number})])
        group = self._running[number] = self._start(number)
        self.record.trials[number].process = group.processes[0]
        self._selector.register(group.pipe, EVENT_READ, number)

    def _speaking(self) -> list[int]:
        """Wait for output; return the trials that have some."""
        wait_s = END_S if any(group.said_the_end_s for group in self._running.values()) else LOOK_S
        return [key.data for key, _ in self._selector.select(wait_s)]

    def _take_in(self, numbers: list[int]) -> None:
        """Record new messages, then answer them."""
        heard = [(number, message) for number in numbers for message in self._running[number].hear()]
        lines = [self._line_of(number, message) for number, message in heard]
        entries = self._append(lines)
        for (number, message), entry in zip(heard, entries, strict=True):
            self.record.apply(entry)
            if "ended" in message:
                self._running[number].said_the_end_s = time.monotonic()
                self._selector.unregister(self._running[number].pipe)
            else:
                self._running[number].answer({"prune": self._is_to_prune(number, message)})

    def _line_of(self, number: int, message: dict[str, Any]) -> Line:
        if "ended" not in message:
            return _line(LOGGED, {"trial": number} | message)
        if number in self._pruned:  # also if it made something else of it, or was ended by it
            return _line(ENDED, {"trial": number, "status": SweepStatus.PRUNED, "failure": None})
        return _line(ENDED, {"trial": number, "status": message["ended"], "failure": message["failure"]})

    def _is_to_prune(self, number: int, message: dict[str, Any]) -> bool:
        if self.rungs is None:
            return False
        value = message["metrics"].get(self.rungs.asha.metric)
        if value is not None:
            self.rungs.add(number, message["iteration"], value)
        if self.rungs.prune(number):
            self._pruned.add(number)
        return number in self._pruned

    def _look_after(self) -> None:
        """Close trials that have exited, and fail those that died without a message."""
        for number, group in list(self._running.items()):
            if group.said_the_end_s is None and group.is_broken():
                self._take_in([number])  # its last words may still be in the pipe
                if group.said_the_end_s is None:
                    self._fail(number)
            elif group.said_the_end_s is not None and group.is_over():
                self._close(number)

    def _fail(self, number: int) -> None:
        self._selector.unregister(self._running[number].pipe)
        ended = {"ended": SweepStatus.FAILED, "failure": self._last_words(number)}
        self._keep([self._line_of(number, ended)])
        self._close(number)

    def _close(self, number: int) -> None:
        self._running.pop(number).close()
        self.record.trials[number].process = None

    def _last_words(self, number: int) -> str:
        codes = self._running[number].last_codes()
        output = self._output(number)
        files = [output, *sorted(output.parent.glob(f"{output.stem}.*{output.suffix}"))]
        texts = [last_of(file, TAIL) for file in files]
        said = ", ".join("still running" if code is None else str(code) for code in codes)
        return "\n".join([f"ended without a result; exit code: {said}", *filter(None, texts)])

    def _keep(self, lines: list[Line]) -> None:
        for entry in self._append(lines):
            self.record.apply(entry)

    def _append(self, lines: list[Line]) -> list[JournalEntry]:
        if lines:
            self.journal.append_all(lines)
        return [JournalEntry(0, at_s, kind, dict(body)) for at_s, kind, body in lines]


def _line(kind: str, body: dict[str, Any]) -> Line:
    return time.time(), kind, body

"""The controller of a sweep: it starts trials, records them, and stops those that ASHA drops."""

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
from rota.sweeps.processes import Team
from rota.sweeps.trial import SweepStatus, Trial

BEGAN, DRAWN, TRAIN, STARTED, LOGGED, ENDED = "began", "drawn", "train", "started", "logged", "ended"
JOURNAL = "journal.sqlite"


def folder_of(local_dir: Path, name: str) -> Path:
    """Where an experiment is. Its name must be the name of a folder, and nothing more."""
    fine = name[:1].isalnum() and all(letter.isalnum() or letter in "._+=@ -" for letter in name)
    if not fine or len(name) > 100 or name != name.strip() or ".." in name:
        raise ConfigError(
            f"experiment {name!r}: give a name of at most 100 letters, digits, '-', '_' and '.', no '..', "
            "a letter or digit first"
        )
    return local_dir / name


class Record:
    """The trials of a sweep as far as its journal goes."""

    def __init__(self, things: Sequence[Any] | None = None) -> None:
        self.trials: list[Trial] = []
        self.metric: str | None = None
        self.mode: str | None = None
        self._things = things
        self._copies: Counter[str] = Counter()

    def apply(self, entry: JournalEntry) -> None:
        """Take in one entry."""
        getattr(self, f"_{entry.kind}")(entry.at_s, entry.body)

    def _began(self, at_s: float, body: dict[str, Any]) -> None:
        self.metric, self.mode = body["metric"], body["mode"]

    def _drawn(self, at_s: float, body: dict[str, Any]) -> None:
        trial = Trial(from_plain(body["cfg"], self._things), status=SweepStatus.SCHEDULED)
        self._copies[trial.trial_id] += 1
        trial.copy = self._copies[trial.trial_id]
        self.trials.append(trial)

    def _started(self, at_s: float, body: dict[str, Any]) -> None:
        """What it had logged when it was started before belongs to a training that is lost."""
        trial = self.trials[body["trial"]]
        trial.status, trial.start_time = SweepStatus.RUNNING, datetime.fromtimestamp(at_s)
        trial.metrics.clear()

    def _train(self, at_s: float, body: dict[str, Any]) -> None:
        """The digest of the train function: for whoever checks it."""

    def _logged(self, at_s: float, body: dict[str, Any]) -> None:
        metrics = self.trials[body["trial"]].metrics
        for name, value in body["metrics"].items():
            metrics.setdefault(name, {})[body["iteration"]] = value

    def _ended(self, at_s: float, body: dict[str, Any]) -> None:
        trial = self.trials[body["trial"]]
        trial.status, trial.end_time = SweepStatus(body["status"]), datetime.fromtimestamp(at_s)
        trial.failure = body["failure"]


def about(asha: ASHA | None) -> dict[str, Any]:
    """What is known of a sweep before there are trials."""
    return {"metric": asha and asha.metric, "mode": asha and asha.mode}


LOOK_S = 0.2
"""How often it looks whether somebody has died who still has open pipes."""
END_S = 0.005
"""How often it looks whether somebody who said the end has gone."""
TAIL = 4000
"""Characters of a dead trial's output that are kept with it."""


class Controller:
    """Owns the journal of a sweep while it runs."""

    def __init__(
        self,
        journal: Journal,
        record: Record,
        start: Callable[[int], Team],
        output: Callable[[int], Path],
        rungs: Rungs | None,
    ) -> None:
        self.journal, self.record, self.rungs = journal, record, rungs
        self._start, self._output = start, output
        self._teams: dict[int, Team] = {}
        self._pruned: set[int] = set()
        self._selector = DefaultSelector()
        self._synced, self._next_sync_s = 0, 0.0
        """Entries that are on the disk, and when it is time for those since."""

    def run(self, at_once: int, between: Callable[[], None]) -> None:
        """All trials that have not ended, so many at once. If it is interrupted, none is left running."""
        waiting = deque(
            number for number, trial in enumerate(self.record.trials) if not trial.is_terminated()
        )
        try:
            while waiting or self._teams:
                while waiting and len(self._teams) < at_once:
                    self._begin(waiting.popleft())
                self._take_in(self._who_speaks())
                self._look_after()
                self._sync()
                between()
            self.journal.sync()
        finally:
            for number in list(self._teams):
                self._teams[number].tell_to_end()
            for number in list(self._teams):
                self._part_with(number)
            self._selector.close()

    def _sync(self) -> None:
        """Bring the journal to the disk, if it is time."""
        if self.journal.count > self._synced and time.monotonic() >= self._next_sync_s:
            self._synced = self.journal.count
            self.journal.sync()
            self._next_sync_s = time.monotonic() + SYNC_EVERY_S

    def _begin(self, number: int) -> None:
        if self.rungs is not None:
            self.rungs.forget(number)
        self._keep([_line(STARTED, {"trial": number})])
        team = self._teams[number] = self._start(number)
        self.record.trials[number].process = team.processes[0]
        self._selector.register(team.pipe, EVENT_READ, number)

    def _who_speaks(self) -> list[int]:
        """Waits until somebody has said something, and not for long where somebody is about to be gone."""
        wait_s = END_S if any(team.said_the_end_s for team in self._teams.values()) else LOOK_S
        return [key.data for key, _ in self._selector.select(wait_s)]

    def _take_in(self, numbers: list[int]) -> None:
        """What they have said is kept first, then answered."""
        heard = [(number, message) for number in numbers for message in self._teams[number].hear()]
        lines = [self._line_of(number, message) for number, message in heard]
        entries = self._append(lines)
        for (number, message), entry in zip(heard, entries, strict=True):
            self.record.apply(entry)
            if "ended" in message:
                self._teams[number].said_the_end_s = time.monotonic()
                self._selector.unregister(self._teams[number].pipe)
            else:
                self._teams[number].answer({"prune": self._is_to_prune(number, message)})

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
        """Part with those that have ended, and note who ended without a word."""
        for number, team in list(self._teams.items()):
            if team.said_the_end_s is None and team.is_broken():
                self._take_in([number])  # its last words may still be in the pipe
                if team.said_the_end_s is None:
                    self._give_up(number)
            elif team.said_the_end_s is not None and team.is_over():
                self._part_with(number)

    def _give_up(self, number: int) -> None:
        self._selector.unregister(self._teams[number].pipe)
        ended = {"ended": SweepStatus.FAILED, "failure": self._last_words(number)}
        self._keep([self._line_of(number, ended)])
        self._part_with(number)

    def _part_with(self, number: int) -> None:
        self._teams.pop(number).close()
        self.record.trials[number].process = None

    def _last_words(self, number: int) -> str:
        codes = self._teams[number].last_codes()
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

"""A power cut takes back what is not on the disk: entries of the journal, and the newest checkpoints.

A folder is copied while its run goes on, with all that the machine has in memory; from the copy is dropped
what a power cut would have taken. The worker is a real one, in the process of the test.
"""

import random
import shutil
from functools import partial
from itertools import count

import pytest

from rota.core.population.events import Reported, TrialFailed
from rota.core.population.view import Terms
from rota.execution import controller
from rota.execution.checkpoints import CheckpointPruner, Checkpoints
from rota.execution.controller import control
from rota.execution.engine import Answered, parse_answer
from rota.execution.entries import parse_decisions, parse_events
from rota.execution.folder import RunPaths
from rota.execution.idle import Idle
from rota.execution.journal import DamagedJournal, _sealed, read_journal, salvage
from rota.execution.worker import Worker
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.evolution.pbt import Pbt
from rota.policies.population import PopulationPolicy

PLACES = {"cut": 100, "flipped": 30, "lost": 30, "all lost": 15}
TRIALS, PARTS = 6, 20
TERMS = Terms(steps=10 * PARTS, interval=10)


class Counting(Idle):
    """Counts the parts that it trains, those that are trained again among them."""

    def __init__(self):
        super().__init__(0.0)
        self.parts = 0

    def train(self, steps, hyper, changes):
        super().train(steps, hyper, changes)
        self.parts += 1


class InProcess:
    """Workers, one on each slot, which carry out an order each when they are waited for."""

    def __init__(self, paths, slots):
        self._assignments = [[] for _ in range(slots)]
        self._trainables = [Counting() for _ in range(slots)]
        self._workers = [Worker(each, Checkpoints(paths.checkpoints.folder)) for each in self._trainables]

    @property
    def parts(self):
        return sum(each.parts for each in self._trainables)

    def nodes(self):
        return [0]

    def send(self, slot, assignment):
        self._assignments[slot].append(assignment.line())

    def wait(self, timeout_s):
        each = enumerate(zip(self._workers, self._assignments, strict=True))
        return [
            Answered(slot, parse_answer(worker.answer(assignments.pop(0))))
            for slot, (worker, assignments) in each
            if assignments
        ]

    def close(self):
        pass


@pytest.fixture
def run(small, monkeypatch):
    """Runs a population under pbt in a folder, to its end, from wherever its journal ends."""
    ticks = count()  # however slow the machine is, some instants pass between two syncs
    counted = partial(CheckpointPruner, every_s=10, tick=lambda: next(ticks))
    monkeypatch.setattr(controller, "CheckpointPruner", counted)

    def conduct(folder, slots=1, **more):
        paths, wanted = RunPaths(folder), small(trials=TRIALS, slots=slots, terms=TERMS)
        workers, policy = (
            InProcess(paths, slots),
            PopulationPolicy(FifoAllocation(), evolution=Pbt(quantile=0.34)),
        )
        outcome = control(wanted.spec(), policy, lambda: workers, paths, **more)
        return outcome, workers.parts

    return conduct


def reports(outcome):
    """What came of a run, whatever the time."""
    return [(each.trial, each.steps, each.metric) for each in outcome.timeline if isinstance(each, Reported)]


@pytest.fixture
def copies(tmp_path, run):
    """The outcome of a run, and copies of its folder after each instant, with how many parts were trained."""
    found = []

    def copy(status, events):
        found.append((tmp_path / f"copy{len(found)}", status.reports))
        shutil.copytree(tmp_path / "run", found[-1][0])

    outcome, parts = run(tmp_path / "run", watch=copy)
    assert parts == len(reports(outcome)) == TRIALS * PARTS
    assert outcome.status.clones > 5
    return outcome, found


def entries(folder):
    return sum(1 for _ in read_journal(RunPaths(folder).journal))


def cut(folder, chance):
    """Drop the tail of what is not yet in the main file, at whatever byte."""
    wal = folder / "journal.sqlite-wal"
    with wal.open("r+b") as stream:
        stream.truncate(chance.randrange(wal.stat().st_size))


def flip(folder, chance):
    """Turn one bit: what SQLite finds then ends before it."""
    wal = folder / "journal.sqlite-wal"
    content = bytearray(wal.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    wal.write_bytes(content)


@pytest.mark.parametrize(("damage", "places"), [(cut, PLACES["cut"]), (flip, PLACES["flipped"])])
def test_what_was_not_on_the_disk_is_taken_from_newer_checkpoints(copies, run, damage, places):
    outcome, found = copies
    chance, refused = random.Random(1), 0
    for folder, reported in chance.sample(found, places):
        damage(folder, chance)
        try:
            kept = entries(folder)
        except DamagedJournal:  # something that had been on the disk is gone: that was no power cut
            refused += 1
            with pytest.raises(DamagedJournal, match=r"journal\.sqlite-wal is missing or cut off"):
                run(folder)
            assert salvage(RunPaths(folder).journal)
            assert reports(run(folder, anew=True)[0]) == reports(outcome)
            continue
        assert kept >= _sealed(RunPaths(folder).journal)
        resumed, trained = run(folder)
        assert reports(resumed) == reports(outcome)
        assert trained <= TRIALS * PARTS - reported  # nothing that was reported is trained again
    assert refused < places  # the journal was synced, and has a tail that was not


def test_what_was_trained_since_the_last_sync_is_lost_at_most(copies, run):
    """Checkpoints that are newer than the last sync are not on the disk either, or only in part."""
    outcome, found = copies
    chance, lost = random.Random(2), 0
    for folder, _ in chance.sample(found, PLACES["lost"]):
        synced_ns = (folder / "journal.sqlite.lock").stat().st_mtime_ns
        for file in (folder / "checkpoints").glob("*.part"):
            if file.stat().st_mtime_ns >= synced_ns and chance.random() < 0.7:
                chance.choice([file.unlink, lambda file=file: file.write_bytes(b"")])()
                lost += 1
        resumed, _ = run(folder)
        assert reports(resumed) == reports(outcome)
        assert not [event for event in resumed.timeline if isinstance(event, TrialFailed)]
    assert lost > PLACES["lost"]


def test_what_the_journal_on_the_disk_needs_is_there_however_much_has_happened_since(copies, small):
    _, found = copies
    spec = small(trials=TRIALS, slots=1, terms=TERMS).spec()
    ahead = 0
    for folder, _ in found:
        journal, ledger = RunPaths(folder).journal, spec.ledger("run")
        for entry in read_journal(journal):
            if entry.number > _sealed(journal):
                ahead += 1
            else:
                ledger.see(parse_events(entry.body.get("events", ())))
                ledger.decide(parse_decisions(entry.body.get("decisions", ())))
        assert ledger.needed() <= set(RunPaths(folder).checkpoints.names())
    assert ahead > len(found)


def test_trials_that_go_on_from_one_lost_checkpoint_on_several_slots_are_all_trained_again(
    tmp_path, run, small, follows
):
    """A trial and its clone are sent at once; when the second is answered the first has been looked for."""
    found = []

    def copy(status, events):
        if status.clones > 0:
            found.append(tmp_path / f"copy{len(found)}")
            shutil.copytree(tmp_path / "run", found[-1])

    run(tmp_path / "run", slots=3, watch=copy)
    hypers = small(trials=TRIALS).hypers
    for folder in random.Random(3).sample(found, PLACES["all lost"]):
        for file in (folder / "checkpoints").glob("*.part"):
            file.unlink()
        resumed, _ = run(folder, slots=3)
        assert follows(resumed.timeline, hypers) == TRIALS * PARTS
        assert not [event for event in resumed.timeline if isinstance(event, TrialFailed)]

"""The engine of populations: everything that changes while trials train, and the calls that change it.

    while question := engine.advance():          # REVIEW the trials that reported, or ASSIGN idle slots
        for decision in policy.answer(question, engine):
            engine.commit(decision)

All of it is in flat arrays (`rota.core.population.memory`). Real runs say what happened (`apply`) in place of
advancing.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any, Protocol

import numpy as np
from numba import types

from rota.core.arrays import Floats
from rota.core.compiled import native_address
from rota.core.errors import IllegalPlan, Stuck
from rota.core.population import calls, memory, stepping
from rota.core.population.events import (
    Assign,
    Assigned,
    Clone,
    Cloned,
    Continue,
    Decision,
    Event,
    Grow,
    Grown,
    Hyper,
    Idled,
    Interval,
    Joined,
    NodeFailed,
    Reported,
    Retire,
    Retired,
    Stop,
    Stopped,
    TrialFailed,
    TrialFinished,
)
from rota.core.population.growing import GrowingPopulation
from rota.core.population.outcomes import ASKED, outcomes_of
from rota.core.population.policies import CompiledAllocation
from rota.core.population.trees import CONSTANT
from rota.core.population.view import PopulationView, Work

FIRST_EVENTS, FIRST_PARTS = 1024, 256


class Landscape(Work, Protocol):
    """Costs and metrics of trials."""

    def begin(self, trial: int, hyper: Hyper) -> None:
        """Start a trial."""

    def train(self, trial: int, steps: int) -> float:
        """Return the metric of a trial after some more steps."""

    def clone(self, trial: int, donor: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        """Continue a trial as a copy of a donor, with these hyper-parameters and this network."""


class RandomBlocks(Protocol):
    """Random numbers, a row for each trial or slot."""

    def block(self, number: int) -> Floats:
        """Return the next numbers of all rows."""


class PopulationEngine(GrowingPopulation):
    """A population that changes by `advance`, or `apply` in a real run, and by `commit`."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._form: CompiledAllocation | None = None
        self._draws: dict[str, RandomBlocks] = {}
        self._timeline: list[Event] = []
        self.put(events=np.zeros(0, memory.EVENT), parts=np.zeros((memory.PART_ROWS, 0), np.int64))
        self._grow()

    @property
    def view(self) -> PopulationView:
        return self

    @property
    def timeline(self) -> list[Event]:
        """The events so far."""
        self._sync()
        count = self.numbers["count"].item()
        for at_s, began_s, ended_s, moved_s, metric, kind, slot, trial, steps, more in self.arrays["events"][
            :count
        ].tolist():
            match kind:
                case memory.REPORTED_EVENT:
                    event: Event = Reported(
                        at_s, slot, trial, steps, began_s, ended_s, moved_s, metric, bool(more)
                    )
                case memory.ASSIGNED_EVENT:
                    event = Assigned(at_s, slot, trial, steps)
                case memory.CLONED:
                    event = Cloned(at_s, trial, slot, *self._objects[more])
                case memory.TRIAL_FAILED:
                    event = TrialFailed(at_s, slot, trial, *self._objects[more])
                case memory.GROWN:
                    event = Grown(at_s, trial, self.grown_by(steps, more))
                case memory.STOPPED_EVENT | memory.TRIAL_FINISHED:
                    event = OF_ONE[kind](at_s, trial)
                case _:
                    event = OF_ONE[kind](at_s, slot)
            self._timeline.append(event)
        self._objects.clear()
        self.write(count=0)
        self._synced = 0
        return self._timeline

    # ── the two calls ───────────────────────────────────────────────────────────────────────────────────────

    def advance(self) -> int:
        """Go on until something is to be decided; return `REVIEW` or `ASSIGN`, or 0 if all trials are done.

        Raises Stuck if trials are left, but nothing will happen.
        """
        while True:
            code: int = stepping.advance(self.address)
            match code:
                case stepping.REVIEW | stepping.ASSIGN:
                    return code
                case stepping.DONE:
                    return 0
                case stepping.OUTCOME:
                    trial, steps = self.numbers["trial"].item(), self.numbers["steps"].item()
                    assert self._landscape is not None
                    self.write(answer=self._landscape.train(trial, steps), answered=True)
                case memory.PREPARE:
                    self._prepare()
                case stepping.GROW:
                    self._grow()
                case stepping.UNREVIEWED:
                    self._check_reviewed()
                case _:
                    raise Stuck(
                        f"at {self.now_s:g} s nothing runs and nothing will happen, but {self.left} trials "
                        f"are not done and {len(self.idle)} slots are idle"
                    )

    def commit(self, decision: Decision) -> None:
        """Put a decision into effect. Raises IllegalPlan if that is not possible."""
        match decision:
            case Assign(slot, parts):
                self._assign(slot, parts)
            case Continue(trial, reviewed):
                self._check_review(trial)
                self._decide(memory.REPORTED_EVENT, trial, reviewed)
            case Clone():
                self._clone(decision)
            case Stop(trial):
                self._check_review(trial)
                self._decide(memory.STOPPED_EVENT, trial)
            case Grow(trial, change):
                self.grow(trial, change)
            case Retire(slot):
                if not 0 <= slot < len(self.retired) or self.retired[slot]:
                    raise IllegalPlan(f"slot {slot} is already retired, or does not exist")
                self._decide(memory.SLOT_RETIRED, slot)

    def request(self, plan: Iterable[Decision]) -> list[Decision]:
        """Commit the decisions of an instant one by one, as they are made, and return them.

        Raises IllegalPlan if one is not possible, or if a trial that reported is not reviewed.
        """
        wanted = []
        for decision in plan:
            self.commit(decision)
            wanted.append(decision)
        self._check_reviewed()
        return wanted

    def apply(self, events: Sequence[Event]) -> None:
        """Take in the events of one instant of a real run."""
        self.now_s = events[0].at_s
        self.freed = 0
        self.write(instants=self.numbers["instants"].item() + 1)
        for event in events:
            self.reserve()
            match event:
                case Reported(_, slot, trial, steps, began_s, ended_s, moved_s, metric, ended):
                    times = float(began_s), float(ended_s), float(moved_s), float(metric)
                    self._take_in(memory.REPORTED_EVENT, slot, trial, steps, *times, int(ended))
                case Idled(_, slot):
                    self._take_in(memory.IDLED, slot)
                case TrialFailed(_, slot, trial, why):
                    self._objects.append((why,))
                    more = len(self._objects) - 1
                    self._take_in(memory.TRIAL_FAILED, slot, trial, 0, 0.0, 0.0, 0.0, 0.0, more)
                case NodeFailed(_, node):
                    self._take_in(memory.NODE_FAILED, node)
                case Joined(_, node):
                    self._take_in(memory.JOINED, node)

    # ── simulations ─────────────────────────────────────────────────────────────────────────────────────────

    def simulate(
        self,
        landscape: Landscape,
        draws: tuple[RandomBlocks, RandomBlocks],
        *,
        report_each: bool = True,
        deadline_s: float = inf,
        **numbers: float,
    ) -> None:
        """Prepare to advance in virtual time.

        Metrics come from the arrays of the landscape (`outcomes`) if it has any, otherwise it is asked.
        The run ends at the deadline; intervals that end then still count. `draws` are random numbers of
        trials and of slots; `numbers` the fields `noise`, `drift`, `load_s`, `evaluate_s` and `save_s` of the
        record.
        """
        cluster, self._landscape = self.cluster, landscape
        changes = [(c.at_s, 1.0, c.node, memory.JOINS if c.joins else memory.LEAVES) for c in cluster.changes]
        changes += [(each.at_s, each.factor, each.node, memory.SLOWS) for each in cluster.slowdowns]
        self._draws = dict(zip(("trial", "slot"), draws, strict=True))
        self.put(
            changes=np.array(sorted(changes, key=lambda change: change[0]), memory.CHANGE),
            slow=np.ones(len(cluster.nodes)),
        )
        self.write(
            n_changes=len(changes), report_each=report_each, reviews=1, deadline_s=deadline_s, **numbers
        )  # fmt: skip
        self._see_landscape()
        self.begin_trees()

    def use(self, form: CompiledAllocation) -> None:
        """Let a compiled allocation answer from now on."""
        self._let(form)
        address, _ = native_address(form.propose, types.int64)
        self.write(propose=address)

    def proposals(self, form: CompiledAllocation) -> Iterator[Assign]:
        """Yield what a compiled allocation proposes; each is to be committed before the next."""
        self._let(form)
        self.write(turn=-1)
        while (code := form.propose(self.address)) != memory.PASS:
            if code == memory.PREPARE:
                self._prepare()
                continue
            slot, start, count, steps = (
                self.numbers[name].item() for name in ("slot", "start", "chosen_trials", "chosen_steps")
            )
            if count:
                yield Assign(slot, self.first(count))
            elif steps:
                waiting = self.waiting
                yield Assign(slot, self.intervals([*waiting[start:], *waiting[:start][::-1]], steps))

    def _let(self, form: CompiledAllocation) -> None:
        """Write the options of a compiled allocation."""
        if form is not self._form:
            self._form = form
            self.put(**form.arrays)
            options = {f"option{number}": value for number, value in enumerate(form.options)}
            self.write(prepared=-1, **options, **form.numbers)

    def _prepare(self) -> None:
        """Give a compiled allocation the numbers that it asks for."""
        assert self._form is not None
        data = self._form.prepare(self)
        if data is not None:
            self.put(data=np.array(data, np.float64))
            self.write(n_data=len(data))

    def snapshot(self) -> "PopulationEngine":
        """Return a copy of everything that changes, for `restore`."""
        return self.fork()

    def restore(self, snapshot: "PopulationEngine") -> None:
        """Make everything as it was at a snapshot, of this engine or of one that was made alike."""
        self.__dict__.update(snapshot.fork().__dict__)

    def fork(self) -> "PopulationEngine":
        """Return a copy that goes on from here, independently."""
        fork = copy.copy(self)
        fork.use_record(self.record.copy())
        fork.arrays = {}
        constant = {"trial_draws", "slot_draws", "switches", "changes", "speeds", *CONSTANT}
        fork.put(**{name: each if name in constant else each.copy() for name, each in self.arrays.items()})
        fork.step_times = copy.copy(self.step_times)
        fork.random = copy.deepcopy(self.random)
        fork._landscape = copy.deepcopy(self._landscape)
        fork.work = fork._landscape or self.work
        for name in ("hyper", "_changes", "kinds", "_objects", "_timeline", "_sizes_mb", "_speeds"):
            setattr(fork, name, list(getattr(self, name)))
        fork._numbers, fork._rankings = dict(self._numbers), {}
        fork._grown_at = [dict(grown) for grown in self._grown_at]
        fork._history = [list(reports) for reports in self._history]
        fork._show()
        if self._landscape is not None:
            fork._see_landscape()
        for name in ("step_s", "expected_s", "spread", "measured"):
            setattr(fork.step_times, name, fork.arrays[name])
        fork.step_times.off = fork.arrays["seconds"][memory.OFF]
        return fork

    # ── how ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _assign(self, slot: int, parts: Sequence[Interval]) -> None:
        given = np.array(parts, np.int64).reshape(-1, 2)
        while (code := calls.assign_parts(self.address, slot, given)) == stepping.GROW:
            self._grow()
        if code == memory.OK:
            return
        trial, left = self.numbers["trial"].item(), self.numbers["steps"].item()
        match code:
            case calls.NOT_IDLE:
                why = f"slot {slot} is not idle; it cannot get an assignment"
            case calls.EMPTY:
                why = f"slot {slot} gets an empty assignment; leave it idle instead"
            case calls.NOT_WAITING:
                why = f"trial {trial} is not waiting; it cannot be assigned to slot {slot}"
            case calls.CUT_INTERVAL:
                steps = self.numbers["wrong"].item()
                why = (
                    f"trial {trial} is assigned {steps} steps; its tree has intervals of {left}, none is cut"
                )
            case _:
                steps = self.numbers["wrong"].item()
                why = f"trial {trial} is assigned {steps} steps; it has {left} left"
        raise IllegalPlan(why)

    def _clone(self, decision: Clone) -> None:
        trial, donor = decision.trial, decision.donor
        if not 0 <= donor < len(self.checkpoint_node) or self.checkpoint_node[donor] < 0:
            raise IllegalPlan(f"trial {trial} cannot clone trial {donor}, which has no checkpoint")
        self._check_review(trial)
        if self.walks_trees:
            self.check_same_tree(decision)
            self.hyper[trial], self.kind[trial] = dict(decision.hyper), self.kind[donor]
            self.write(growths=self.numbers["growths"].item() + 1)
        else:
            self.hyper[trial], self._changes[trial] = dict(decision.hyper), tuple(decision.changes)
            self._set_kind(trial)
        self._objects.append((decision.hyper, decision.changes))
        self.reserve()
        calls.clone(self.address, trial, donor, len(self._objects) - 1)
        if self._landscape is not None and not self.walks_trees:
            self._landscape.clone(trial, donor, decision.hyper, decision.changes)
            self._see_landscape()

    def _see_landscape(self) -> None:
        """Take over the arrays of the landscape."""
        found = outcomes_of(self._landscape)
        if found is None:
            self.write(outcome=ASKED)
            return
        self.put(**found.arrays())
        self.write(outcome=found.kind, **found.numbers())

    def _decide(self, kind: int, item: int, more: bool = False) -> None:
        self.reserve()
        calls.decide(self.address, kind, item, more)

    def _check_review(self, trial: int) -> None:
        if trial not in self.to_review:
            raise IllegalPlan(f"trial {trial} has not reported; it cannot be reviewed")

    def _check_reviewed(self) -> None:
        if self.to_review:
            raise IllegalPlan(f"trial {self.to_review[0]} reported and was not reviewed")

    def _take_in(
        self, kind: int, slot: int, trial: int = -1, steps: int = 0, began_s: float = 0.0,
        ended_s: float = 0.0, moved_s: float = 0.0, metric: float = 0.0, more: int = 0,
    ) -> None:  # fmt: skip
        calls.take_in(self.address, kind, slot, trial, steps, began_s, ended_s, moved_s, metric, more)

    def reserve(self) -> None:
        """Make room for a step."""
        if calls.is_full_at(self.address):
            self._grow()

    def _grow(self) -> None:
        """Make room for more events and intervals, and draw more random numbers."""
        events, old = self.arrays["events"], self.arrays["parts"]
        used, parts = self.numbers["parts_used"].item(), self.numbers["need_parts"].item()
        if used + parts >= old.shape[1]:
            room = max(2 * old.shape[1], used + parts + 1, FIRST_PARTS)
            new = np.zeros((memory.PART_ROWS, room), np.int64)
            spans = np.zeros((memory.SPAN_ROWS, room))
            new[:, : old.shape[1]] = old
            if old.shape[1]:
                spans[:, : old.shape[1]] = self.arrays["spans"]
            new[memory.NEXT, old.shape[1] :] = [
                *range(old.shape[1] + 1, room),
                self.numbers["free_part"].item(),
            ]
            self.put(parts=new, spans=spans)
            self.write(part_room=room, free_part=old.shape[1])
        needed = self.numbers["count"].item() + 2 * self.arrays["parts"].shape[1] + 2 * len(self.up) + 16
        if needed + len(self.cluster.nodes) > len(events):
            room = max(2 * len(events), needed + len(self.cluster.nodes), FIRST_EVENTS)
            more = np.zeros(room, memory.EVENT)
            more[: len(events)] = events
            self.put(events=more)
            self.write(event_room=room)
        for name, draws in self._draws.items():
            if not self.numbers["noise" if name == "trial" else "drift"].item():
                continue
            drawn = self.numbers["most_drawn" if name == "trial" else "most_drifted"].item()
            width = self.numbers[f"{name}_width"].item()
            if drawn >= width:
                blocks = [draws.block(0)]
                while sum(block.shape[1] for block in blocks) <= max(drawn, 2 * width - 1):
                    blocks.append(draws.block(len(blocks)))
                self.put(**{f"{name}_draws": np.hstack(blocks)})
                self.write(**{f"{name}_width": self.arrays[f"{name}_draws"].shape[1]})


OF_ONE: dict[int, Any] = {
    memory.IDLED: Idled,
    memory.STOPPED_EVENT: Stopped,
    memory.TRIAL_FINISHED: TrialFinished,
    memory.SLOT_RETIRED: Retired,
    memory.NODE_FAILED: NodeFailed,
    memory.JOINED: Joined,
}
"""Events of a slot, a trial or a node alone."""

"""Placement and growth by one agent: which trial, which change of its network, for how many intervals."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rota.core.arrays import Floats
from rota.core.compiled import carray, kernel
from rota.core.memory import pointer
from rota.core.population.events import Assign, Decision, Grow
from rota.core.population.memory import (
    BUDGET,
    GIVEN,
    INTERVAL,
    PASS,
    PREPARE,
    QUEUE,
    STEPS,
    population_at,
    step_s_of,
    trials_of,
)
from rota.core.population.outcomes import ALONG_TREES
from rota.core.population.policies import CompiledAllocation, ProposingAllocation
from rota.core.population.proposals import propose_part, propose_steps
from rota.core.population.trees import grow_along
from rota.policies.agents import (
    AgentFacts,
    another_version,
    check_features,
    read_arrays,
    read_facts,
    write_agent_file,
    wrong_weights,
)
from rota.policies.allocation.finish import next_by_speed
from rota.policies.joint.features import (
    FEATURES,
    SEEN,
    describe,
    empty_notes,
    notes_of,
    number_of_changes,
    starts_s,
    time_left_s,
)
from rota.policies.joint.network import (
    LENGTHS,
    JointWeights,
    add_gradient,
    add_length_gradient,
    draw,
    score_lengths,
    scores,
    shapes,
    slopes_of_entropy,
    softmax,
)

KIND, NETWORK = "joint", "joint-scorer"
SHIPPED = Path(__file__).parents[2] / "agents" / "joint"


def write_agent(folder: Path, weights: JointWeights, about: Mapping[str, Any], **others: Any) -> None:
    """Write an agent; `others` are its configuration, provenance and evaluation."""
    options: dict[str, int | float | str] = {"hidden": len(weights.b)}
    found = AgentFacts(
        kind=KIND, network=NETWORK, options=options, features=SEEN, about=dict(about), sha256="", **others
    )
    write_agent_file(folder, found, weights._asdict())
    read_weights.cache_clear()  # the folder may have held another agent
    _form.cache_clear()


@cache
def read_weights(folder: Path) -> JointWeights:
    """Return the weights of an agent. Raises InputError if they are missing, damaged or of another agent."""
    found = read_facts(folder, KIND)
    arrays = read_arrays(folder, found)
    check_features(folder, found, SEEN)
    try:
        weights = JointWeights(
            *(np.ascontiguousarray(arrays[name], np.float64) for name in JointWeights._fields)
        )
        wanted = shapes(len(weights.b))
    except (KeyError, ValueError, TypeError) as error:
        raise wrong_weights(folder, found, error) from None
    if any(each.shape != shape for each, shape in zip(weights, wanted, strict=True)):
        raise another_version(folder, found, f"its first layer is {weights.a.shape}, not {wanted.a}")
    return weights


@dataclass(frozen=True, slots=True)
class Joint(ProposingAllocation):
    """Choose trial, change and intervals as an agent does that has learned on growth trees."""

    agent: Path | None = None
    """Folder of the agent; the shipped one if not given."""

    def __post_init__(self) -> None:
        read_weights(self.agent or SHIPPED)

    @property
    def compiled(self) -> CompiledAllocation:
        return _form(self.agent or SHIPPED)

    def hand_out(self, view: Any) -> Iterator[Decision]:
        """Yield changes of networks and assignments one by one; each is to be committed before the next."""
        for assign in view.proposals(_form(self.agent or SHIPPED, by_python=True)):
            trial, change = assign.parts[0].trial, view.numbers["wrong"].item()
            if change:
                yield Grow(trial, _change(view, trial, change))
            yield Assign(assign.slot, assign.parts)


def _change(view: Any, trial: int, column: int) -> str:
    """Return the text of a change in a column of what the agent chose from."""
    if view.walks_trees:
        return str(view.walked.nodes.changes[column - 1])
    return str(view.changes_allowed(trial)[column - 1])


@lru_cache(maxsize=8)
def _form(agent: Path, *, by_python: bool = False) -> CompiledAllocation:
    weights = read_weights(agent)
    return form_of(weights.flat, len(weights.b), BY_PYTHON if by_python else GREEDY)


GREEDY, DRAWN, BY_PYTHON = range(3)
"""How decisions are made (`draw_room`): the best by score; a `share` drawn, whose gradients are added up; or
the best, while Python makes the changes of networks on their word."""


def form_of(flat: Floats, hidden: int, how: int = GREEDY, **arrays: Any) -> CompiledAllocation:
    """Return an agent as a compiled allocation; `arrays` has the `gradient` if decisions are drawn."""
    numbers = {"hidden": hidden, "draw_room": how}
    return CompiledAllocation(propose, prepare=prepare, arrays={"weights": flat, **arrays}, numbers=numbers)


def prepare(engine: Any) -> list[float] | None:
    """Give the agent its notes at first, and which changes are possible where no trees say it."""
    if engine.numbers["prepared"].item() == 0:
        found = empty_notes(engine)
        engine.put(notes=found["notes"])
        engine.write(notes_width=found["width"])
    if engine.walks_trees:
        return None
    allowed = [engine.changes_allowed(trial) for trial in range(len(engine.hyper))]
    most = max(map(len, allowed))
    table = np.full((len(allowed), most), -1.0)
    for trial, changes in enumerate(allowed):
        for column, change in enumerate(changes):
            table[trial, column] = engine.kind_with(trial, change)
    return table.ravel().tolist()


@kernel
def propose(address):  # type: ignore[no-untyped-def]
    """Propose a trial for the fastest idle slot in turn, change its network, or leave the slot idle."""
    p = population_at(address)
    if p.prepared < 0:
        p.prepared = 0
        return PREPARE
    if p.outcome != ALONG_TREES and p.prepared != p.instants + 1:
        p.prepared = p.instants + 1
        return PREPARE
    slot = next_by_speed(p)
    if slot < 0:
        return PASS
    most, width = p.waiting * (number_of_changes(p) + 1) + 1, p.hidden
    features, hidden, found = np.empty((most, FEATURES)), np.empty((most, width)), np.empty(most)
    trial_at, change, kind = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    count = describe(p, slot, features, trial_at, change, kind)
    p.wrong = 0
    if count == 0:
        return propose_steps(p, slot, 0, 0)
    p.asked += 1
    flat = weights_of(p, p.weights)
    scores(features, count, flat, width, hidden, found)
    draws = p.draw_room == DRAWN and np.random.random() < p.share
    chosen = drawn(p, features, hidden, found, count, flat) if draws else np.argmax(found[:count])
    if trial_at[chosen] < 0:
        return propose_steps(p, slot, 0, 0)
    trial = trials_of(p)[QUEUE, trial_at[chosen]]
    intervals = how_many(p, slot, trial, kind[chosen], features[chosen], hidden[chosen], flat, draws)
    if change[chosen]:
        change_network(p, trial, change[chosen])
    return propose_part(p, slot, trial_at[chosen], intervals * trials_of(p)[INTERVAL, trial])


@kernel
def change_network(p, trial, column):  # type: ignore[no-untyped-def]
    """Change the network of a trial, or tell Python to."""
    notes_of(p)[1][trial] += 1.0
    if p.draw_room == BY_PYTHON:
        p.wrong = column
    else:
        grow_along(p, trial, column)


@kernel
def weights_of(p, address):  # type: ignore[no-untyped-def]
    """Return an array like the flat weights."""
    size = FEATURES * p.hidden + 2 * p.hidden + FEATURES + LENGTHS * (p.hidden + 1)
    return carray(pointer(address), size, np.float64)


@kernel
def gradients_of(p):  # type: ignore[no-untyped-def]
    """Return the sums of gradients: of log probabilities, and of entropies; and the sum of entropies."""
    size = FEATURES * p.hidden + 2 * p.hidden + FEATURES + LENGTHS * (p.hidden + 1)
    flat = carray(pointer(p.gradient), 2 * size + 1, np.float64)
    return flat[:size], flat[size : 2 * size], flat[2 * size :]


@kernel
def drawn(p, features, hidden, found, count, flat):  # type: ignore[no-untyped-def]
    """Draw a candidate, and add the gradients of that."""
    gradient, of_entropy, total = gradients_of(p)
    entropy = softmax(found, count)
    chosen, slopes = draw(found, count), np.empty(count)
    for row in range(count):
        slopes[row] = (1.0 if row == chosen else 0.0) - found[row]
    add_gradient(features, hidden, slopes, count, flat, p.hidden, gradient)
    slopes_of_entropy(found, count, entropy, slopes)
    add_gradient(features, hidden, slopes, count, flat, p.hidden, of_entropy)
    total[0] += entropy
    p.drawn += 1
    return chosen


@kernel
def how_many(p, slot, trial, kind, seen, layer, flat, draws):  # type: ignore[no-untyped-def]
    """Return for how many intervals a trial is assigned; those after the deadline are left out."""
    trials, lengths = trials_of(p), np.array([1, 2, 4, 0])
    interval = trials[INTERVAL, trial]
    left = -(-(trials[BUDGET, trial] - trials[STEPS, trial] - trials[GIVEN, trial]) // interval)
    s = (time_left_s(p) * (1.0 + 1e-9) - starts_s(p, trial, slot)) / (interval * step_s_of(p)[slot, kind])
    lengths[LENGTHS - 1] = max(1, min(left, int(s)))
    allowed, found, slopes = np.zeros(LENGTHS, np.bool_), np.empty(LENGTHS), np.empty(LENGTHS)
    for row in range(LENGTHS):
        allowed[row] = row == 0 or lengths[row - 1] < lengths[row] <= lengths[LENGTHS - 1]
        if row == LENGTHS - 1:
            allowed[row] = lengths[row] != 1 and lengths[row] != 2 and lengths[row] != 4
    if allowed.sum() == 1:
        return 1
    score_lengths(layer, allowed, flat, p.hidden, found)
    if not draws:
        return lengths[np.argmax(found)]
    gradient, of_entropy, total = gradients_of(p)
    entropy = softmax(found, LENGTHS)
    chosen = draw(found, LENGTHS)
    for row in range(LENGTHS):
        slopes[row] = (1.0 if row == chosen else 0.0) - found[row]
    add_length_gradient(seen, layer, slopes, flat, p.hidden, gradient)
    slopes_of_entropy(found, LENGTHS, entropy, slopes)
    add_length_gradient(seen, layer, slopes, flat, p.hidden, of_entropy)
    total[0] += entropy
    return lengths[chosen]

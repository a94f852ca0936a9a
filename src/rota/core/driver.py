"""The loop over an engine without Python in it, for policies that offer a compiled key or plan.

A policy says so by a property `compiled`: a `CompiledKey`, if it is a ranking and first fit, or a
`CompiledPlan`. The method `plan` stays the definition; both must decide the same.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types

from rota.core import stepping
from rota.core.calls import (
    ADVANCE_TYPES,
    COMMIT_TYPES,
    FIT_TYPES,
    KEY_TYPES,
    PLAN_TYPES,
    SORT_TYPES,
    call_advance,
    call_commit,
    call_key,
    call_plan,
    place,
    sort_rows,
)
from rota.core.columns import PLACE
from rota.core.compiled import kernel, native_address
from rota.core.engine import JobsEngine
from rota.core.errors import ConfigError
from rota.core.kernels import refresh, sort_by
from rota.core.memory import columns_of, engine_at, floats, ints, order_of_jobs
from rota.core.placement import STAYS, STYLES, Style, fit
from rota.core.policy import Plan
from rota.core.queues import append, leave_queues, move, place_risen, push, seqs_of, sort_listed
from rota.core.sizes import grow
from rota.core.stepping import OK, stay
from rota.core.view import ClusterView

DECLINED = -37
"""What `run` returns if a compiled plan leaves the decision to Python; no code of `rota.core.stepping`."""


@dataclass(frozen=True, slots=True)
class CompiledKey:
    """A policy that ranks by a key and places first fit."""

    key: Any
    """A kernel `key(columns, row, now_s)` that returns a number: lower is earlier."""
    style: Style = "consolidated"
    strict: bool = False
    keep: bool | None = None
    """As in `ClusterView.first_fit`."""
    fixed_while_waiting: bool = False
    """Whether the key of a job changes only while it runs, or as it starts or stops: then waiting jobs need
    not be ranked again at each instant."""
    grows: bool = False
    """Whether jobs also get idle slots, as by `ClusterView.grow`, if the policy needs `resizes`."""


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """A policy whose plan is compiled."""

    plan: Any
    """A kernel `plan(address)` of the engine's record that fills the draft and calls `decide`."""
    options: tuple[float, ...] = ()
    """Numbers that the kernel reads by `options_of`."""
    queues: bool = False
    """Whether the kernel keeps waiting jobs in queues (`rota.core.queues`)."""
    otherwise: Callable[[ClusterView], Plan] | None = None
    """The plan at instants at which the kernel calls `decline`."""
    memory: Callable[[ClusterView], int] | None = None
    """Address of what the kernel shares with Python, `memory` in the engine's record; kept in `view.memo`."""


def compiled_of(policy: Any) -> CompiledKey | CompiledPlan | None:
    """Return the compiled form of a policy, unless a subclass has replaced a method that it stands for.

    Raises ConfigError if its attribute `compiled` is something else.
    """
    replaced: set[str] = set()
    for made in type(policy).__mro__:
        methods = {name for name, each in vars(made).items() if callable(each) or isinstance(each, property)}
        if "compiled" in vars(made):
            own = {name for name in methods if not name.startswith("__")} - {"needs"}
            found = None if own & replaced else policy.compiled
            if not isinstance(found, CompiledKey | CompiledPlan | None):
                what = f"{made.__name__}.compiled is a {type(found).__name__}"
                raise ConfigError(f"{what}; return a CompiledKey, a CompiledPlan or None, or rename it")
            return found
        replaced |= methods
        if "plan" in vars(made):
            return None
    return None


def drive_compiled(
    engine: JobsEngine,
    form: CompiledKey | CompiledPlan,
    every: int,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Run an engine to its end; call `progress` with the number of ended jobs after each `every` instants."""
    function, kept = prepare(engine, form)
    try:
        for _ in _rounds(engine, form, function, every):
            if progress is not None:
                progress(engine.done)
    finally:
        engine.see()
    del kept


def prepare(engine: JobsEngine, form: CompiledKey | CompiledPlan) -> tuple[int, Any]:
    """Give an engine the compiled form of its policy; return the address of its plan, and what to keep."""
    engine.write(sort=code_at(sort_by, types.none, *SORT_TYPES), fit=code_at(fit, types.int64, *FIT_TYPES))
    engine.see()
    match form:
        case CompiledKey():
            key = code_at(form.key, types.float64, *KEY_TYPES)
            keep = not engine.cost.each_instant if form.keep is None else form.keep
            engine.write(key=key, style=STYLES[form.style], strict=form.strict, keep=keep, pending=False)
            if form.grows:
                return code_at(plan_and_grow, types.none, *PLAN_TYPES), None
            if not form.fixed_while_waiting:
                return code_at(plan_by_key, types.none, *PLAN_TYPES), None
            engine.use_queues()
            return code_at(plan_by_queues, types.none, *PLAN_TYPES), None
        case CompiledPlan():
            options = np.array([*form.options], np.float64)
            engine.write(options=options.ctypes.data, option_count=len(options), pending=False)
            if form.queues:
                engine.use_queues()
            if form.memory is not None:
                engine.write(memory=form.memory(engine.view))
            return code_at(form.plan, types.none, *PLAN_TYPES), options


def code_at(function: Any, result: Any, *arguments: Any) -> int:
    """Return the address of a kernel's code; raise ConfigError if it is none, or returns something else."""
    if not hasattr(function, "py_func"):
        name = getattr(function, "__name__", repr(function))
        raise ConfigError(f"{name}: is not compiled; put @kernel of rota.core.compiled above it")
    address, found = native_address(function, *arguments)
    found = types.unliteral(found)
    if found != result:
        name = function.py_func.__name__
        raise ConfigError(f"{name}: the compiled function returns {found}; it must return {result}")
    return address


def _rounds(
    engine: JobsEngine, form: CompiledKey | CompiledPlan, function: int, every: int
) -> Iterator[None]:
    """Yield after so many instants each, until all jobs are done."""
    advance = code_at(stepping.advance, types.int64, *ADVANCE_TYPES)
    commit = code_at(stepping.commit, types.int64, *COMMIT_TYPES)
    while True:
        code = run(engine.address, advance, function, commit, every)
        if code == stepping.DONE:
            return
        if code == OK:
            yield
        else:
            make_way(engine, form, code)


def make_way(engine: JobsEngine, form: CompiledKey | CompiledPlan, code: int) -> None:
    """Do what `run` needs to go on, given what it returned; raises Stuck or IllegalPlan if it cannot."""
    if code == DECLINED and isinstance(form, CompiledPlan) and form.otherwise is not None:
        engine.see()
        engine.commit(form.otherwise(engine.view))
    else:
        engine.resolve(code)


@kernel
def run(address, advance, plan, commit, instants):
    """Advance, plan and commit at so many instants; return OK, or why it ended before."""
    e = engine_at(address)
    present = ints(e.order, 0)
    for _ in range(instants):
        if not e.pending:
            code = call_advance(advance, address)
            if code < 0:
                return code
            call_plan(plan, address)
            if e.declined:
                e.declined = 0
                return DECLINED
            if not e.undecided:
                continue  # the plan that runs stays
            e.pending = 1
        code = call_commit(commit, address, e.draft, e.planned, e.wakes_s, present)
        if code != OK:
            return code
        e.pending = 0
    return OK


@kernel
def decline(e):
    """Leave the decision of this instant to Python; nothing may have been changed."""
    e.declined = 1


@kernel
def decide(e, jobs, wake_s):
    """Say what a compiled plan is: the number of jobs in the draft, and a wake-up."""
    e.planned = jobs
    e.wakes_s = wake_s
    e.is_as_placed = 0


@kernel
def decide_placed(e, jobs, wake_s):
    """Do the same if the draft is as `place` has left it, so that it need not be checked."""
    decide(e, jobs, wake_s)
    e.is_as_placed = 1


@kernel
def options_of(e):
    """Return the options of a compiled plan."""
    return floats(e.options, e.option_count)


@kernel
def plan_by_key(address):
    """Rank all jobs by the policy's key, then first fit."""
    e = engine_at(address)
    columns, order, keys = columns_of(e), order_of_jobs(e), floats(e.keys, e.capacity)
    for row in order:
        keys[row] = call_key(e.key, columns, row, e.now_s)
    ranked = ints(e.ranking, e.active)
    sort_rows(e, order, keys, ranked)
    order[:] = ranked
    decide_placed(e, place(e, address, order, e.style, e.strict, e.keep), np.inf)


@kernel
def plan_and_grow(address):
    """Do the same, then give out idle slots."""
    plan_by_key(address)
    e = engine_at(address)
    if e.sizes:
        grow(address, e.planned)
        e.is_as_placed = 0


@kernel
def plan_by_queues(address):
    """Do the same where the keys of waiting jobs are fixed: rank only those that are not in queues."""
    e = engine_at(address)
    e.is_lazy = 1
    rank_listed(e)
    order = order_of_jobs(e)
    jobs = place(e, address, order, e.style, e.strict, e.keep)
    if jobs == STAYS:
        stay(e, np.inf)
    else:
        leave_queues(e, jobs)
        decide_placed(e, jobs, np.inf)


@kernel
def rank_listed(e):
    """Rank list order by the policy's key, and put the jobs in it that wait into their queues."""
    columns, order, keys, seqs = columns_of(e), order_of_jobs(e), floats(e.keys, e.capacity), seqs_of(e)
    arrived = order.shape[0] - e.coming if e.is_sorted else 0
    for i in range(order.shape[0]):
        row = order[i]
        if columns[PLACE, row] >= 0.0 and not e.each_instant:
            refresh(columns, row, e.now_s)
        key = call_key(e.key, columns, row, e.now_s)
        if i < arrived:
            move(keys, seqs, row, key, e)
        else:
            append(keys, seqs, row, key, e)
    place_risen(order, seqs, e)
    e.is_sorted = 1
    running = 0
    for row in order:
        if columns[PLACE, row] < 0.0:
            push(e, row)
        else:
            order[running] = row
            running += 1
    sort_listed(order[:running], keys)

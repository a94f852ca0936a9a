"""Why an engine refuses a plan, or cannot go on, in words."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rota.core import columns as c
from rota.core import kernels, stepping
from rota.core.errors import IllegalPlan
from rota.core.policy import Plan
from rota.core.view import INT32

if TYPE_CHECKING:
    from rota.core.engine import JobsEngine


def why_stuck(engine: "JobsEngine") -> str:
    """Return why jobs wait although nothing will happen."""
    row = engine.order[0]
    job, slots = int(engine.columns[c.JOB, row]), int(engine.columns[c.GPUS, row])
    first = f"the first, number {job} of the trace, needs {slots} slots"
    waiting = f"{engine.active} jobs wait"
    return f"at {engine.now_s:g} s nothing runs and nothing will happen, but {waiting}; {first}"


def checked_order(engine: "JobsEngine", given: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the list order of a plan. Raises IllegalPlan unless it names each active job once."""
    order = np.ascontiguousarray(given, INT32)
    if len(order) != engine.active:
        raise IllegalPlan(f"at {engine.now_s} s: the plan orders {len(order)} of {engine.active} jobs")
    if not kernels.names_each_once(order, engine.columns):
        raise IllegalPlan(f"at {engine.now_s} s: the plan's order does not name each active job once")
    return order


def why_illegal(engine: "JobsEngine", code: int, plan: Plan) -> str:
    """Return what is wrong with a plan, given what `commit` returned."""
    match code:
        case stepping.TOO_EARLY:
            why = f"the plan sets a wake-up in the past, at {plan.wake_at_s} s"
        case stepping.TOO_MANY:
            why = f"the plan runs {plan.jobs} jobs; {engine.most_jobs} can share the slots"
        case _:
            why = kernels.ILLEGAL[code]
    return f"at {engine.now_s} s: {why}"

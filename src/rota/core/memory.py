"""The memory of an engine as compiled code sees it: one record with the addresses of all arrays.

A call from Python into compiled code costs most of its time for its arguments: an array takes a tenth of a
microsecond or more to unpack. So kernels take the address of this record, an integer, and build their views
of the arrays themselves. A batch of engines is a list of such addresses.
"""

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils

from rota.core.columns import GIVEN
from rota.core.compiled import carray, intrinsic, kernel
from rota.core.timeline import EVENT

ARRAYS = (
    # of jobs
    *("columns", "order", "free", "table", "submit_s", "keys", "marks", "ranking"),
    # of the cluster
    *("nodes", "slot_node", "own_slots", "speeds", "change_s", "change_node", "change_joins"),
    # of plans and their differences
    *("scratch", "load", "actions", "kept", "paused", "ending"),
    # of the timeline
    *("events", "arena"),
)
"""Fields of an engine's record that are addresses of arrays."""
SIZES = (
    *("fields", "capacity", "jobs"),
    *("node_rows", "node_count", "slots", "slot_rows", "models", "kinds", "changes"),
    *("scratch_rows", "scratch_width", "most_jobs", "bound", "event_room", "arena_room"),
)
PLANS = ("current", "draft", "first", "second")
"""Addresses of plans: the one that runs, the spare one to fill, and the two that take turns to be that."""
RULES = (
    *("failures", "saves"),  # the address of their record, or 0; whether preempted jobs are saved first
    *("sharing", "each_instant", "is_even", "keeps_timeline", "slots_per_gpu"),
    # of a compiled policy: its form, and its latest plan
    *("key", "style", "strict", "keep", "fixed_while_waiting", "is_sorted", "options", "option_count"),
    *("planned", "pending", "is_kept_known", "is_as_placed"),
    *("fit", "sort"),  # addresses of `placement.fit` and `kernels.sort_by`
)
COUNTERS = (
    *(
        "active",
        "arrived",
        "done",
        "ends",
        "count",
        "used",
        "changed",
        "idle",
        "instants",
        "running",
        "busy",
        "pauses",
    ),
    *("coming", "ending_now", "changing"),  # of the next instant
    "undecided",
    *("need_rows", "need_events", "need_slots"),
)
SECONDS = (
    *("now_s", "at_s", "end_s", "wake_s", "wakes_s"),
    *("checkpoint_every_s", "cross_node", "cross_switch"),
    *("ends_rel", "ends_abs", "arrivals_rel", "merge_rel", "merge_abs"),
)
SUMS = ("active_s", "waiting_s", "running_s", "busy_s", "completed_s")
"""Accumulators: the integrals of active, waiting and running jobs and of busy slots, and the sum of JCTs."""

ENGINE = np.dtype(
    [(name, "i8") for name in (*ARRAYS, *SIZES, *PLANS, *RULES, *COUNTERS)]
    + [(name, "f8") for name in (*SECONDS, *SUMS)]
)
PLAN = np.dtype([(name, "i8") for name in ("index", "width", "slots", "room", "pace_s", "jobs")])


@intrinsic
def pointer(typingctx: Any, address: Any) -> Any:
    """Turn an address into a pointer."""
    del typingctx

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), codegen


@kernel
def engine_at(address):
    """Return the record of an engine."""
    return carray(pointer(address), 1, ENGINE)[0]


@kernel
def plan_at(address):
    """Return the record of a plan."""
    return carray(pointer(address), 1, PLAN)[0]


@kernel
def floats(address, n):
    return carray(pointer(address), n, np.float64)


@kernel
def ints(address, n):
    return carray(pointer(address), n, np.int32)


@kernel
def columns_of(e):
    """Return the table of active jobs: the columns of `rota.core.columns` over rows."""
    return carray(pointer(e.columns), (e.fields, e.capacity), np.float64)


@kernel
def table_of(e):
    """Return the table of all jobs of the workload."""
    return carray(pointer(e.table), (GIVEN, e.jobs), np.float64)


@kernel
def order_of_jobs(e):
    """Return the rows of the active jobs in list order."""
    return carray(pointer(e.order), e.active, np.int32)


@kernel
def all_rows(e):
    return carray(pointer(e.order), e.capacity, np.int32)


@kernel
def nodes_of(e):
    return carray(pointer(e.nodes), (e.node_rows, e.node_count), np.int32)


@kernel
def slot_node_of(e):
    return carray(pointer(e.slot_node), e.slots, np.int32)


@kernel
def own_slots_of(e):
    """Return the policy's own columns over the slots."""
    return carray(pointer(e.own_slots), (e.slot_rows, e.slots), np.float64)


@kernel
def scratch_of(e):
    return carray(pointer(e.scratch), (e.scratch_rows, e.scratch_width), np.int32)


@kernel
def load_of(e):
    return carray(pointer(e.load), (2, e.slots), np.int32)


@kernel
def actions_of(e):
    return carray(pointer(e.actions), e.most_jobs, np.int8)


@kernel
def kept_of(e):
    """Return whether each job of the draft stays on its slots, as `placement.fit` has left it."""
    return carray(pointer(e.kept), e.most_jobs, np.int8)


@kernel
def speeds_of(e):
    return carray(pointer(e.speeds), (e.models, e.kinds), np.float64)


@kernel
def events_of(e):
    return carray(pointer(e.events), e.event_room, EVENT)


@kernel
def index_of(p):
    """Return the index of a plan: rows ROW, UNIT and BEGIN."""
    return carray(pointer(p.index), (3, p.width), np.int32)


@kernel
def slots_of(p):
    return carray(pointer(p.slots), p.room, np.int32)


@kernel
def pace_of(p):
    return carray(pointer(p.pace_s), p.width - 1, np.float64)

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
    *("seqs", "queues", "queue_facts", "queue_kinds"),
    # of the cluster
    *("nodes", "slot_node", "own_slots", "own_groups", "speeds", "change_s", "change_node", "change_joins"),
    # of plans and their differences
    *("scratch", "load", "actions", "kept", "paused", "ending", "ended", "history"),
    # of the timeline
    *("events", "arena"),
)
"""Fields of an engine's record that are addresses of arrays."""
SIZES = (
    *("fields", "capacity", "jobs", "history_jobs"),
    *("node_rows", "node_count", "slots", "slot_rows", "groups", "group_rows", "models", "kinds", "changes"),
    *("queue_count", "queue_room"),
    *("scratch_rows", "scratch_width", "most_jobs", "bound", "event_room", "arena_room"),
)
PLANS = ("current", "draft", "first", "second")
"""Addresses of plans: the one that runs, the spare one to fill, and the two that take turns to be that."""
RULES = (
    *("failures", "sizes", "saves"),  # addresses of records, or 0; whether preempted jobs are saved first
    "moves",  # whether running jobs move to faster devices
    *("sharing", "each_instant", "is_even", "keeps_timeline", "slots_per_gpu"),
    *(
        "knows",
        "predicts",
    ),  # what the policy knows of durations (`rota.core.durations`), and if it is predicted
    # of a compiled policy: its form, and its latest plan
    *("key", "style", "strict", "keep", "is_sorted", "options", "option_count"),
    *("planned", "pending", "declined", "is_kept_known", "is_as_placed"),
    "memory",  # address of what it shares with Python, or 0
    "is_lazy",  # whether a compiled policy refreshes running jobs itself, and knows that a plan may stay
    *("fit", "sort"),  # addresses of `placement.fit` and `kernels.sort_by`
)
COUNTERS = (
    *(
        "active",
        "arrived",
        "done",
        "ends",
        "count",
        "before",
        "used",
        "changed",
        "idle",
        "instants",
        "running",
        "busy",
        "pauses",
    ),
    *("coming", "ending_now", "changing"),  # of the next instant
    *("learnt", "refit_at"),  # ended jobs that are known to who predicts, and how many make it predict anew
    *(
        "queued",
        "at",
        "first_queue",
        "first_row",
        "top",
        "bottom",
        "risen",
        "formerly",
    ),  # of `rota.core.queues`
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
OF_THIS_ENGINE = {
    *("table", "submit_s", "nodes", "slot_node", "speeds", "change_s", "change_node", "change_joins"),
    *("scratch", "load", "actions", "kept", "paused", "key", "sort", "fit", "failures", "sizes"),
    *("history", "history_jobs"),
    *("options", "option_count", "memory"),
    *("queues", "queue_facts", "queue_kinds", "queue_count", "queue_room"),
}
"""Fields that a restored engine keeps."""

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
def history_of(e):
    """Return the jobs that had ended before: the number of group and gang size, and the seconds of work."""
    return carray(pointer(e.history), (2, e.history_jobs), np.float64)


@kernel
def order_of_jobs(e):
    """Return the rows of the active jobs in list order, but for those in queues."""
    return carray(pointer(e.order), e.active - e.queued, np.int32)


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
def own_groups_of(e):
    """Return the policy's own columns over the groups of jobs; the last group stands for all jobs."""
    return carray(pointer(e.own_groups), (e.group_rows, e.groups), np.float64)


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

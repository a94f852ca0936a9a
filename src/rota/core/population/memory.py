"""The memory of a population's engine as compiled code sees it: one record with the addresses of all arrays.

As for jobs (`rota.core.memory`), kernels take the address of this record, and build their views themselves.
"""

import numpy as np

from rota.core.compiled import carray, kernel
from rota.core.memory import pointer

(
    STATUS, STEPS, GIVEN, FRESH, FAILURES, CHECKPOINT, AT, KIND, QUEUE, REVIEWS, DRAWN, MARK, BUDGET,
    INTERVAL, GREW,
) = range(15)  # fmt: skip
"""Rows over trials. GIVEN are steps assigned and not reported, DRAWN intervals begun. QUEUE and REVIEWS are
lists of trials: those that wait, and those to be reviewed. BUDGET are the steps that a trial may train in
all, INTERVAL those after which it reports. GREW is whether its network was changed since its last report."""
TRIAL_ROWS = 15

NODE, IDLE, MEASURED, FIRST, UNREPORTED, CURRENT, SINCE, BEGAN_AS, MEMORY, DUE, TURN, DRIFTS = range(12)
"""Rows over slots. FIRST, UNREPORTED and CURRENT are intervals of its assignment: the first of all, the first
that was not reported, and the one that is trained; SINCE is the number of the assignment, 0 for none; MEMORY
the trial that a slot has in memory. IDLE, MEASURED, DUE and TURN are lists of slots: DUE are those that begin
an interval at this instant, TURN those that an allocation serves."""
SLOT_ROWS = 12
UP, RETIRED = range(2)
"""Flags of slots."""
ENDS_S, TRIAL_S, FIRST_S, TRAINED_S, END_S, BEGAN_S, MOVED_S, WAITS_S, DRIFT, OFF, SPEED = range(11)
"""Rows over slots, mostly in seconds: ENDS_S is when its assignment is expected to end, END_S
when its current interval will."""
SECONDS_ROWS = 11

TRIAL, PART_STEPS, NEXT, OVER = range(4)
"""Rows over intervals that are assigned; OVER are those that are not to be reported any more."""
PART_ROWS = 4
SPAN_BEGAN_S, SPAN_ENDED_S, SPAN_MOVED_S = range(3)
"""Rows over the same."""
SPAN_ROWS = 3

LEAVES, JOINS, SLOWS = range(3)
"""Changes of nodes."""
CHANGE = np.dtype([("at_s", "f8"), ("factor", "f8"), ("node", "i8"), ("what", "i8")])

(
    ASSIGNED_EVENT, REPORTED_EVENT, IDLED, CLONED, STOPPED_EVENT, TRIAL_FINISHED, SLOT_RETIRED, TRIAL_FAILED,
    NODE_FAILED, JOINED, GROWN,
) = range(11)  # fmt: skip
"""Kinds of events, in the order of `rota.core.population.events.Event`."""
EVENT = np.dtype(
    [(name, "f8") for name in ("at_s", "began_s", "ended_s", "moved_s", "metric")]
    + [(name, "i8") for name in ("kind", "slot", "trial", "steps", "more")]
)
"""An event; `more` is whether a trial ended by itself, or the number of what is kept as Python objects. The
`steps` of GROWN are the number of the change in a tree, or -1 if its text is kept."""

OK = 0
PASS = -1
"""What a compiled allocation returns if it assigns nothing more at this instant."""
PREPARE = 4
"""What it returns if it asks for numbers that Python computes."""

ARRAYS = (
    *("trials", "metric", "slots", "flags", "seconds", "parts", "spans", "events", "changes"),
    *("slow", "switches", "step_s", "expected_s", "spread", "measured", "speeds", "sizes_mb"),
    *("trial_draws", "slot_draws", "data"),
    *("curve", "grown", "progress", "reached", "curves", "curve_steps"),
    *("node_of", "training", "pending"),  # of trials on trees, then of nodes
    *("child", "structure", "node_seconds", "accuracy"),
    *("weights", "features", "allowed", "chosen", "notes", "gradient"),  # of agents
)
"""Fields of the record that are addresses of arrays."""
COUNTERS = (
    *("n_trials", "n_slots", "n_nodes", "n_kinds", "n_changes", "part_room", "event_room", "n_data"),
    *("trial_width", "slot_width", "n_curves", "curve_width", "tree_nodes", "tree_changes"),
    *(
        "interval",
        "budget",
        "shortest",
        "attempts",
        "least_advanced_first",
        "report_each",
        "moves_are_free",
        "outcome",
    ),
    *("left", "leader", "freed", "waiting", "idle", "to_review", "n_measured", "due", "decisions"),
    *("count", "keeps_timeline", "free_part", "parts_used", "assignments", "begun", "changed", "stamp"),
    *("most_drawn", "most_drifted", "slots_version", "growths"),
    *("stage", "ending", "happened", "reviews", "propose", "turn", "turns", "prepared", "instants"),
    *("trial", "steps", "answered", "wrong", "need_parts"),
    *("slot", "start", "chosen_trials", "chosen_steps", "proposed"),
    *("hidden", "asked", "drawn", "draw_room", "notes_width"),  # of agents
)
SECONDS = (
    *("now_s", "at_s", "best", "target", "enough", "answer", "deadline_s"),
    *("dispatch_s", "latency_s", "bandwidth_mb_s", "cross_switch_mb_s"),
    *("noise", "drift", "load_s", "evaluate_s", "save_s", "gain"),
    *("option0", "option1", "option2", "option3", "option4", "option5", "option6"),
    "share",
)
POPULATION = np.dtype([(name, "i8") for name in (*ARRAYS, *COUNTERS)] + [(name, "f8") for name in SECONDS])


@kernel
def population_at(address):
    """Return the record of a population's engine."""
    return carray(pointer(address), 1, POPULATION)[0]


@kernel
def trials_of(p):
    return carray(pointer(p.trials), (TRIAL_ROWS, p.n_trials), np.int64)


@kernel
def metric_of(p):
    return carray(pointer(p.metric), p.n_trials, np.float64)


@kernel
def slots_of(p):
    return carray(pointer(p.slots), (SLOT_ROWS, p.n_slots), np.int64)


@kernel
def flags_of(p):
    return carray(pointer(p.flags), (2, p.n_slots), np.bool_)


@kernel
def seconds_of(p):
    return carray(pointer(p.seconds), (SECONDS_ROWS, p.n_slots), np.float64)


@kernel
def parts_of(p):
    return carray(pointer(p.parts), (PART_ROWS, p.part_room), np.int64)


@kernel
def spans_of(p):
    return carray(pointer(p.spans), (SPAN_ROWS, p.part_room), np.float64)


@kernel
def events_of(p):
    return carray(pointer(p.events), p.event_room, EVENT)


@kernel
def by_kind(p, address):
    """Return an array over slots and kinds of trials."""
    return carray(pointer(address), (p.n_slots, p.n_kinds), np.float64)


@kernel
def step_s_of(p):
    return by_kind(p, p.step_s)


@kernel
def data_of(p):
    """Return the numbers that an allocation has prepared."""
    return carray(pointer(p.data), p.n_data, np.float64)

"""Whether a timeline speaks only of what is there: compiled code trusts the numbers that it is given."""

import numpy as np

from rota.core.events import Kind
from rota.core.timeline import Timeline


def problem(timeline: Timeline, jobs: int, nodes: int, slots: int) -> str | None:
    """The first thing that is wrong with a timeline of so many jobs, nodes and slots, if any."""
    events = timeline.events
    of_node = np.isin(events["kind"], (Kind.NODE_LOST, Kind.NODE_JOINED))
    end = events["begin"] + events["gpus"]
    checks = {
        "has events of unknown kinds": not np.all(np.isin(events["kind"], list(Kind))),
        "has no events": len(events) == 0,
        "names jobs that the run does not have": np.any(
            (events["job"] < 0) | (~of_node & (events["job"] >= jobs))
        ),
        "names nodes that the cluster does not have": np.any(of_node & (events["job"] >= nodes)),
        "is not in order of time": not np.all(np.diff(events["at_s"]) >= 0.0),
        "has fewer slots than its events name": np.any(
            (events["gpus"] < 0) | (events["begin"] < 0) | (end > len(timeline.slots))
        ),
        "names slots that the cluster does not have": np.any(
            (timeline.slots < 0) | (timeline.slots >= slots)
        ),
    }
    return next((what for what, wrong in checks.items() if wrong), None)

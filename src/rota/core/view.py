"""What a scheduler sees: the columns of the active jobs, the nodes, and the plan that runs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.cluster import Cluster
from rota.core.columns import ESTIMATE, ITERATION_S
from rota.core.costs import CostModel
from rota.core.durations import Knows, write_left
from rota.core.errors import ConfigError, unknown
from rota.core.kernels import sort_by
from rota.core.placement import Style, first_fit
from rota.core.policy import Needs, Plan
from rota.core.sizes import grow

INT32 = np.dtype(np.int32)


class ClusterView:
    """What a policy may read: the columns of the active jobs, and the nodes.

    A column has one value per *row*. `order` lists the rows of the active jobs in list order (new arrivals
    last); rows that are not in `order` hold stale values.
    """

    address: int
    """Address of the engine's record, for its kernels."""
    memory: Any
    """The arrays that are at addresses: they are there as long as the view."""
    active: int
    """Number of active jobs."""
    resizes: bool = False
    """Whether gangs may have several sizes."""
    knows: Knows = "exact"
    """What the policy knows of durations: exact, none, noisy or predicted."""
    cluster: Cluster
    cost: CostModel
    slots: int
    capacity: int
    """Number of rows."""
    columns: NDArray[np.float64]
    """All columns, for kernels; a policy writes only to its own."""
    own_slots: NDArray[np.float64]
    """The policy's own columns over the slots."""
    own: Mapping[str, NDArray[np.float64]]
    """Name → the policy's own column of that name, over jobs, slots or groups of jobs."""
    nodes: NDArray[np.int32]
    """The nodes, as in `rota.core.columns`."""
    slot_node: NDArray[np.int32]
    """The node of each slot."""
    current: Plan
    """The plan that runs now."""
    draft: Plan
    """A spare plan to fill."""
    scratch: NDArray[np.int32]
    """Spare rows for placement (`placement.scratch_rows`), wide enough for nodes, slots and gang sizes."""
    memo: dict[str, Any]
    """A policy's cache of computed values; it must not affect decisions."""
    ranked: NDArray[np.int32] | None = None
    """The last ranking of all active jobs, known to be a permutation; `commit` skips its check."""
    exact_left: NDArray[np.float64]
    """Iterations that are left in truth, for `remaining`."""
    exact_duration_s: NDArray[np.float64]
    """Duration in the trace, for `duration_s`."""
    iteration_s: NDArray[np.float64]
    """Seconds per iteration, alone on the reference device."""
    gpus: NDArray[np.float64]
    """Gang size: number of slots that a job occupies."""
    submit_s: NDArray[np.float64]
    priority: NDArray[np.float64]
    executed_s: NDArray[np.float64]
    place: NDArray[np.float64]
    """Position in the current plan; -1 if the job waits."""

    def __init__(self, now: NDArray[np.float64]) -> None:
        """`now` has the time as its only element."""
        self._now = now
        self.rows = np.zeros(0, np.int32)
        """List order, then free space."""

    def show_own(self, needs: Needs, jobs: Floats, slots: Floats, groups: Floats) -> None:
        """Show a policy's own columns by their names. Raises ConfigError if a name is taken."""
        names = needs.own_names
        taken = [name for name in names if hasattr(ClusterView, name) or name in ClusterView.__annotations__]
        taken += [name for name in names if names.count(name) > 1]
        if taken:
            raise ConfigError(f"needs: no own column can be {taken[0]!r}: the view has that name already")
        self.own_slots = slots
        self.own = dict(zip(names, (*jobs, *slots, *groups), strict=True))

    def __getattr__(self, name: str) -> NDArray[np.float64]:
        own: Mapping[str, NDArray[np.float64]] = self.__dict__.get("own", {})
        if name in own:
            return own[name]
        raise AttributeError(f"a view has no {name!r}; {unknown('own column', name, own)}")

    @property
    def now_s(self) -> float:
        """The time in seconds."""
        return float(self._now[0])

    @property
    def order(self) -> NDArray[np.int32]:
        """The rows of the active jobs in list order."""
        return self.rows[: self.active]

    @property
    def remaining(self) -> NDArray[np.float64]:
        """Iterations left, as far as the policy knows. Raises ConfigError if it knows nothing."""
        if self.knows == "exact":
            return self.exact_left
        self._check_known("remaining")
        left = np.zeros(self.capacity)
        write_left(self.columns, self.order, left)
        return left

    @property
    def remaining_s(self) -> NDArray[np.float64]:
        """Seconds of work left, alone on the reference device; as `remaining`."""
        return self.remaining * self.iteration_s

    @property
    def duration_s(self) -> NDArray[np.float64]:
        """Seconds that the jobs take in all: what the trace says, or what the policy knows of it."""
        if self.knows == "exact":
            return self.exact_duration_s
        self._check_known("duration_s")
        expected_s: NDArray[np.float64] = self.columns[ESTIMATE] * self.columns[ITERATION_S]
        return expected_s

    @property
    def waited_s(self) -> NDArray[np.float64]:
        """Seconds since submission in which the job had no slots."""
        return self.now_s - self.submit_s - self.executed_s

    def _check_known(self, name: str) -> None:
        if self.knows == "none":
            raise ConfigError(
                f"view.{name}: this scheduler knows no durations; if it needs them, let its `needs` return "
                'Needs(durations="needed"): then it knows them where others do not, and is marked so'
            )

    def rank(self, key: NDArray[np.float64], order: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Return the rows by ascending key; equal keys stay in list order."""
        rows = self.rows[: self.active] if order is None else order
        ranked = np.empty(len(rows), INT32)
        sort_by(rows, key, ranked)
        if order is None or order is self.ranked:
            self.ranked = ranked
        return ranked

    def first_fit(
        self,
        order: NDArray[np.int32],
        *,
        style: Style = "consolidated",
        strict: bool = False,
        keep: bool | None = None,
    ) -> Plan:
        """Return a plan of the jobs that fit, in this order; with `strict`, up to the first that does not.

        With `keep` (by default: unless the cost model is `interval`) a running job stays on its slots unless
        a job before it needs them. `style` says how a gang is placed on nodes: on as few as possible
        (`consolidated`), on as many (`spread`), or on any free slots (`anywhere`).
        """
        return first_fit(self, order, style=style, strict=strict, keep=keep)

    def grow(self, plan: Plan) -> Plan:
        """Return a plan of `first_fit` in which jobs that can use them also have the slots that are idle.

        In the order of the plan, each job gets the largest gang for which there are slots, if that saves more
        time than a start costs; a job first gets back what it has. Only for policies that need `resizes`; it
        changes nothing if no job has several sizes.
        """
        if self.resizes:
            grow(self.address, plan.jobs)
        return plan


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view

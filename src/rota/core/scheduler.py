"""The base class of schedulers that are written outside of rota."""

from abc import ABC, abstractmethod

from rota.core.loop import Needs
from rota.core.plan import Plan
from rota.core.state import ClusterView


class Scheduler(ABC):
    """A scheduler: says at each instant which jobs run, and where.

    A subclass writes `plan(view)`. Fields of a dataclass are its options. It is called by its `name`, a text
    in the class, or else by the name of its class: `ShortestFirst` is `shortest-first`.

    >>> from dataclasses import dataclass
    >>> import rota
    >>> @dataclass(frozen=True)
    ... class Aging(rota.Scheduler):
    ...     patience: float = 0.1
    ...
    ...     def plan(self, view):
    ...         return view.first_fit(view.rank(view.remaining_s - self.patience * view.waited_s))
    >>> jobs = rota.synthetic_trace(jobs=50, gpus=16, seed=1)
    >>> rota.simulate(jobs, rota.Cluster.uniform(nodes=2, gpus=8), Aging(2.0)).scheduler
    'aging'
    """

    @property
    def needs(self) -> Needs:
        """What the state must keep for this scheduler; nothing unless a subclass says so."""
        return Needs()

    @abstractmethod
    def plan(self, view: ClusterView) -> Plan:
        """Return what should run now.

        It is asked once per instant, and changes nothing. `view` has a column per property of the active
        jobs: `remaining_s`, `waited_s`, `executed_s` and `submit_s` in seconds, `gpus`, `priority` …
        `view.rank` sorts jobs by a key, `view.first_fit` gives slots to the jobs that fit, in that order.
        """

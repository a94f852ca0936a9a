"""rota: simulate the schedule of deep-learning training before running it."""

# What is listed in __all__ is what scripts and notebooks can rely on; all else may change.

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rota.core.cluster import Cluster
    from rota.core.durations import Durations
    from rota.core.errors import RotaError
    from rota.core.failures import Failures
    from rota.core.network import Growth
    from rota.core.policy import Scheduler
    from rota.core.population.policies import Allocation, Evolution
    from rota.learning.agent import Agent
    from rota.learning.environment import AdaptationEnv
    from rota.learning.placement.environment import PlacementEnv
    from rota.learning.scheduling.environment import SchedulingEnv, SchedulingVectorEnv
    from rota.library.compare import Comparison, compare
    from rota.library.inputs import read_trace, synthetic_trace
    from rota.library.population_run import PopulationRun
    from rota.library.populations import simulate_population
    from rota.library.run import Run, load
    from rota.library.simulate import simulate
    from rota.library.spaces import Choice, LogUniform, Uniform
    from rota.library.tune import TuneResult, tune
    from rota.workload.jobs import Workload

__all__ = [
    "AdaptationEnv",
    "Agent",
    "Allocation",
    "Choice",
    "Cluster",
    "Comparison",
    "Durations",
    "Evolution",
    "Failures",
    "Growth",
    "LogUniform",
    "PlacementEnv",
    "PopulationRun",
    "RotaError",
    "Run",
    "Scheduler",
    "SchedulingEnv",
    "SchedulingVectorEnv",
    "TuneResult",
    "Uniform",
    "Workload",
    "__version__",
    "compare",
    "load",
    "read_trace",
    "simulate",
    "simulate_population",
    "synthetic_trace",
    "tune",
]

_WHERE = {
    "AdaptationEnv": "rota.learning.environment",
    "Agent": "rota.learning.agent",
    "Allocation": "rota.core.population.policies",
    "Choice": "rota.library.spaces",
    "Cluster": "rota.core.cluster",
    "Comparison": "rota.library.compare",
    "Durations": "rota.core.durations",
    "Evolution": "rota.core.population.policies",
    "Failures": "rota.core.failures",
    "Growth": "rota.core.network",
    "LogUniform": "rota.library.spaces",
    "PlacementEnv": "rota.learning.placement.environment",
    "PopulationRun": "rota.library.population_run",
    "RotaError": "rota.core.errors",
    "Run": "rota.library.run",
    "Scheduler": "rota.core.policy",
    "SchedulingEnv": "rota.learning.scheduling.environment",
    "SchedulingVectorEnv": "rota.learning.scheduling.environment",
    "TuneResult": "rota.library.tune",
    "Uniform": "rota.library.spaces",
    "Workload": "rota.workload.jobs",
    "compare": "rota.library.compare",
    "load": "rota.library.run",
    "read_trace": "rota.library.inputs",
    "simulate": "rota.library.simulate",
    "simulate_population": "rota.library.populations",
    "synthetic_trace": "rota.library.inputs",
    "tune": "rota.library.tune",
}
"""Name → its module, which is imported when the name is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

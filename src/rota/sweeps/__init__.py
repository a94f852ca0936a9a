"""Parameter sweeps, on this machine and on Slurm: `import rota.sweeps as ss`.

Modules are imported on first use, since a trial needs little more than `log`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rota.sweeps.inside import log
from rota.sweeps.trial import ExperimentExistsError, ExperimentNotFoundError, TrialPruned

if TYPE_CHECKING:
    from rota.sweeps.asha import ASHA
    from rota.sweeps.experiment import Experiment, Result
    from rota.sweeps.sampler import Choice, Grid, LogUniform, Uniform
    from rota.sweeps.slurm import SlurmCfg
    from rota.sweeps.trial import Trial

__all__ = [
    "ASHA",
    "Choice",
    "Experiment",
    "ExperimentExistsError",
    "ExperimentNotFoundError",
    "Grid",
    "LogUniform",
    "Result",
    "SlurmCfg",
    "Trial",
    "TrialPruned",
    "Uniform",
    "log",
]
_WHERE = {
    "ASHA": "asha",
    "Choice": "sampler",
    "Experiment": "experiment",
    "Grid": "sampler",
    "LogUniform": "sampler",
    "Result": "experiment",
    "SlurmCfg": "slurm",
    "Trial": "trial",
    "Uniform": "sampler",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)

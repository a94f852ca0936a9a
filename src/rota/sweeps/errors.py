"""What can go wrong in a sweep, by name."""

from rota.core.errors import InputError


class ExperimentExistsError(InputError):
    """There is an experiment, or something else, in the folder of a new one."""


class ExperimentNotFoundError(InputError):
    """There is no such experiment."""


class TrialPruned(Exception):
    """Raised by `log` inside a trial that is not to go on."""

"""A Lightning callback that logs what a model logs, and ends a pruned trial.

    trainer = lightning.Trainer(callbacks=[SweepCallback("val_loss")], …)

`SlurmCfg(ntasks=…)` starts the processes of a trial, also on this machine. Give the trainer as many by
`devices` and `num_nodes`; it finds them started.
"""

from typing import TYPE_CHECKING, Any

from rota.core.errors import InputError
from rota.sweeps.inside import log

if TYPE_CHECKING:

    class Callback: ...
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        try:
            from pytorch_lightning import Callback
        except ImportError:
            raise InputError("SweepCallback needs Lightning: pip install 'rota[lightning]'") from None


class SweepCallback(Callback):
    """A callback that logs metrics after each validation, or each training epoch without one."""

    def __init__(self, metrics: str | list[str]) -> None:
        super().__init__()
        self.metrics = [metrics] if isinstance(metrics, str) else list(metrics)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.sanity_checking:
            self._log(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.enable_validation:
            self._log(trainer)

    def _log(self, trainer: Any) -> None:
        """Log those metrics that there are; every process has them, rank 0 reports."""
        found = {
            name: trainer.callback_metrics[name] for name in self.metrics if name in trainer.callback_metrics
        }
        if not found:
            known = ", ".join(sorted(map(str, trainer.callback_metrics))) or "nothing"
            raise InputError(f"SweepCallback: none of {self.metrics} was logged; logged were: {known}")
        if trainer.is_global_zero:
            log({name: float(value) for name, value in found.items()}, trainer.current_epoch)

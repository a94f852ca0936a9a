"""For those who train with Lightning: logs what a model logs, and ends a trial that is pruned.

    trainer = lightning.Trainer(callbacks=[SweepCallback("val_loss")], …)

A trial of several processes has them from `SlurmCfg(ntasks=…)`, on this machine, too: give the trainer as
many by `devices` and `num_nodes`, and it finds that somebody else has started them.
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
    """After each validation, or each training epoch of a model without one, logs metrics under the epoch."""

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
        """What is there of the metrics. Every process has them, one is heard."""
        found = {
            name: trainer.callback_metrics[name] for name in self.metrics if name in trainer.callback_metrics
        }
        if not found:
            known = ", ".join(sorted(map(str, trainer.callback_metrics))) or "nothing"
            raise InputError(f"SweepCallback: none of {self.metrics} was logged; logged were: {known}")
        if trainer.is_global_zero:
            log({name: float(value) for name, value in found.items()}, trainer.current_epoch)

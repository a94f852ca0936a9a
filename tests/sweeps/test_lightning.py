"""The callback in a real Lightning trainer."""

from importlib.util import find_spec

import pytest

import rota.sweeps as ss

pytestmark = pytest.mark.skipif(find_spec("lightning") is None, reason="Lightning is not installed")


def make_train(ranks: int = 1, metric: str = "val_loss", validate: bool = True):
    """A train function whose validation loss is the configuration's `level`, less one for each epoch."""

    def train(cfg):
        import warnings
        from importlib import import_module

        import torch

        import_module(
            "rota.training.torchvision"
        )  # Lightning imports it: it must have been made to work before
        lightning = import_module("lightning")
        callback = import_module("rota.sweeps.lightning").SweepCallback(metric)

        warnings.simplefilter("ignore")
        data = torch.utils.data.DataLoader(torch.zeros(8, 2), batch_size=2)

        class Model(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(2, 1)

            def training_step(self, batch, number):
                loss = self.layer(batch).square().mean()
                self.log("train_loss", 0.5 * cfg["level"], on_epoch=True)
                return loss

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        def validation_step(self, batch, number):
            self.log("val_loss", float(cfg["level"] - self.current_epoch), sync_dist=True)

        if validate:
            Model.validation_step = validation_step
        lightning.Trainer(
            max_epochs=3,
            accelerator="cpu",
            devices=ranks,
            strategy="ddp" if ranks > 1 else "auto",
            callbacks=[callback],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
        ).fit(Model(), data, data if validate else None)

    return train


def test_each_epoch_is_logged_without_the_sanity_check_and_the_worse_is_pruned(sweep):
    asha = ss.ASHA("val_loss", "min", reduction_factor=2)
    experiment = sweep(make_train(), {"level": ss.Grid([10, 20])}, asha=asha)
    good, bad = experiment.run(max_concurrent_trials=1).trials
    assert good.failure is None
    assert good.metrics == {"val_loss": {0: 10.0, 1: 9.0, 2: 8.0}}
    assert (good.status, bad.status) == ("completed", "pruned")
    assert bad.metrics == {"val_loss": {0: 20.0}}


def test_without_validation_training_epochs_are_logged(sweep):
    (trial,) = sweep(make_train(metric="train_loss", validate=False), {"level": 4}).run().trials
    assert trial.failure is None
    assert trial.metrics == {"train_loss": {0: 2.0, 1: 2.0, 2: 2.0}}


def test_two_processes_under_ddp_are_heard_once(sweep):
    (trial,) = sweep(make_train(ranks=2), {"level": 10}, slurm_cfg=ss.SlurmCfg(ntasks=2)).run().trials
    assert trial.failure is None
    assert trial.metrics == {"val_loss": {0: 10.0, 1: 9.0, 2: 8.0}}


def test_a_metric_that_is_not_logged_is_named(sweep):
    (trial,) = sweep(make_train(metric="accuracy"), {"level": 1}).run().trials
    assert trial.status == "failed"
    assert "none of ['accuracy'] was logged; logged were:" in (trial.failure or "")

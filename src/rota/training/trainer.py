"""Training of one network, epoch by epoch, on a given clock, with changes in between.

    trainer = Trainer(network, task, clock)
    epoch = trainer.epoch(until_s=120)      # trained and evaluated, or failed
    trainer.change(Change.parse("deepen 1"))
    trainer.epoch(until_s=120)

Time, steps and the allocation are checked before every mini-batch. An epoch that the end of a budget cuts
short stays open, and the next call continues it, so a resumed run equals one that was not stopped.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from rota.core.errors import InputError, unknown
from rota.core.network import SHRINK, Change, Structure
from rota.training.clock import Ended, Epoch, Length, MadeChange, TrainingClock, TrainingProgress
from rota.training.describe import describe
from rota.training.distil import Teacher
from rota.training.exchange import GangMember
from rota.training.hyper import Decay, Hyperparameters, OptimizerName, optimizer, set_rates
from rota.training.net2net import NotGrowable, blocks, carry, deepen, is_wide, layer_in, shrink, widen
from rota.training.task import Batch, Statistics, Task, evaluating

OUT_OF_MEMORY = "out of memory"
"""First words of the failure of an epoch for lack of memory."""
TOO_FEW = "Expected more than 1 value per channel"
"""PyTorch's message for a batch that is too small to be normalised."""


class Diverged(Exception):
    """The loss is infinite or NaN."""


class Trainer:
    """A network in training. `network`, `progress` and `history` are for reading."""

    def __init__(
        self,
        network: nn.Module,
        task: Task,
        clock: TrainingClock,
        hyper: Hyperparameters | None = None,
        *,
        optimizer_name: OptimizerName = "adam",
        decay: Decay | None = None,
        length: Length | None = None,
        seed: int = 0,
    ) -> None:
        self.network = network
        self.task = task
        self.clock = clock
        self.hyper = hyper or Hyperparameters()
        self.decay = decay or Decay()
        self.length = length or Length()
        self.progress = TrainingProgress()
        self.history: list[MadeChange] = []
        self.smaller: list[nn.Module] = []
        """Networks from before each growth that was not undone, the latest last."""
        self.teacher: Teacher | None = None
        self.gang: GangMember | None = None
        """The gang that trains this network, if any; each member trains on its share of a batch."""
        self.optimizer = optimizer(optimizer_name, network.parameters(), self.hyper)
        self._structure: Structure | None = None
        self._statistics = Statistics(network)
        self.started_as = self.structure.fingerprint
        torch.manual_seed(seed)  # dropout draws from the global generator
        network.train()
        self.clock.prepare(self.structure, self.hyper.batch_size)

    @property
    def structure(self) -> Structure:
        """The structure of the network."""
        if self._structure is None:
            self._structure = describe(self.network)
        return self._structure

    @property
    def epoch_length(self) -> int | None:
        """The number of steps in an epoch; None if an epoch has a length in seconds."""
        if self.length.seconds is not None:
            return None
        return self.length.steps or max(1, self.task.examples // self.hyper.batch_size)

    # ── training ────────────────────────────────────────────────────────────────────────────────────────────

    def epoch(
        self,
        *,
        until_s: float = math.inf,
        until_steps: int | None = None,
        interrupted: Callable[[float], bool] | None = None,
        evaluate: bool = True,
        on_step: Callable[[], None] | None = None,
    ) -> Epoch:
        """Train until the epoch is whole, the budget of time or steps is over, or `interrupted(now_s)`.

        An infinite or NaN loss, or too little memory, ends the epoch as `failed`; the network is then as it
        was before that step.
        """
        ended: Ended = "failed"
        metrics: dict[str, float] = {}
        failure = ""
        if self.progress.epoch_steps == 0:
            self.progress.epoch_began_s = self.clock.now_s()
        try:
            ended = self._train(until_s, until_steps, interrupted, on_step)
            if evaluate and ended == "whole":
                metrics = self.task.evaluate(self.network)
        except Diverged as error:
            ended, failure = "failed", str(error)
        except (MemoryError, RuntimeError) as error:
            if not _out_of_memory(error):
                raise
            ended, failure = "failed", self._say_out_of_memory()
        except ValueError as error:
            if TOO_FEW not in str(error):
                raise
            raise InputError(
                f"batch_size is {self.hyper.batch_size}; a layer that normalises gets one value of each "
                "channel, which is too few: give a larger batch_size, or a larger size of images"
            ) from None
        return self._close(ended, failure, metrics)

    def _train(
        self,
        until_s: float,
        until_steps: int | None,
        interrupted: Callable[[float], bool] | None,
        on_step: Callable[[], None] | None,
    ) -> Ended:
        progress, clock, whole = self.progress, self.clock, self.epoch_length
        whole_s = progress.epoch_began_s + (self.length.seconds or math.inf)
        while whole is None or progress.epoch_steps < whole:
            if until_steps is not None and progress.steps >= until_steps:
                return "steps"
            if not clock.fits(until_s):
                return "time"
            if progress.epoch_steps and not clock.fits(whole_s):
                break
            if interrupted is not None and interrupted(clock.now_s()):
                return "allocation"
            self._step()
            if on_step is not None:
                on_step()
        return "whole"

    def _step(self) -> None:
        progress, size = self.progress, self.hyper.batch_size
        first, share = (0, size) if self.gang is None else self.gang.share(size)
        batch = self.task.batch(self.network, progress.position + first, share)
        value = self._derive(batch)
        if self.gang is not None:
            self.gang.exchange.average(self.network)
        self.optimizer.step()
        self.clock.step()
        progress.steps += 1
        progress.position += size
        progress.epoch_steps += 1
        progress.epoch_loss += value

    def _derive(self, batch: Batch) -> float:
        """Compute gradients and return the loss; a failure restores running statistics."""
        self._statistics.keep()
        try:
            loss = self._loss(batch)
            value = loss.item()
            if not math.isfinite(value):
                raise Diverged(f"the loss is {value} at step {self.progress.steps + 1}; try a smaller lr")
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
        except Exception:
            self._statistics.restore()
            raise
        return value

    def _loss(self, batch: Batch) -> torch.Tensor:
        outputs = self.network(batch.inputs)
        loss = self.task.loss(outputs, batch)
        return loss if self.teacher is None else self.teacher.loss(outputs, batch, loss)

    def _close(self, ended: Ended, failure: str, metrics: dict[str, float]) -> Epoch:
        progress = self.progress
        loss = progress.epoch_loss / progress.epoch_steps if progress.epoch_steps else math.nan
        lr, number = self.lr, progress.epochs
        if ended not in ("steps", "time"):  # a budget that is over leaves the epoch open
            progress.epochs += 1
            progress.epoch_steps, progress.epoch_loss = 0, 0.0
        if ended == "whole":
            self._decay()
        return Epoch(number, ended, progress.steps, self.clock.now_s(), loss, lr, metrics, failure)

    def _decay(self) -> None:
        self.progress.since_change += 1
        self._tell()
        if self.teacher is not None:
            self.teacher.epoch_over()
            if self.teacher.spent:
                self.teacher = None

    @property
    def lr(self) -> float:
        """The current learning rate."""
        return self.decay.lr(self.hyper.lr, self.progress.since_change)

    def _say_out_of_memory(self) -> str:
        self.optimizer.zero_grad()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return f"{OUT_OF_MEMORY} at batch size {self.hyper.batch_size}; try a smaller one"

    # ── changes ─────────────────────────────────────────────────────────────────────────────────────────────

    def change(self, change: Change) -> None:
        """Change the network; reset the learning rate, keep the optimiser's state of layers that stay.

        An impossible change is an error and leaves everything as it was. To widen a block that is already
        that wide changes nothing, so that a policy may choose it again.
        """
        if change.kind == "nothing" or (change.kind == "widen" and self._is_wide(change)):
            return
        if change.grows:
            self._grow(change)
        else:
            self._shrink()
        self.history.append(MadeChange(self.progress.steps, change))
        self._structure = None
        self._statistics = Statistics(self.network)
        self.progress.since_change = 0
        self._tell()

    def _block(self, change: Change) -> str:
        names = blocks(self.network)
        if change.block >= len(names):
            raise NotGrowable(f"{change}: the network has {len(names)} blocks, counted from 0")
        return names[change.block]

    def _is_wide(self, change: Change) -> bool:
        """Return whether a block is already as wide as asked for."""
        block, first = self._block(change), [*self.smaller, self.network][0]
        now, before = (is_wide(each, layer_in(each, block), change.width) for each in (self.network, first))
        return now and not before

    def _grow(self, change: Change) -> None:
        name = self._block(change)
        before = deepcopy(self.network)
        if change.kind == "deepen":
            deepen(self.network, name, optimizer=self.optimizer, calibration=self._calibration())
        else:
            widen(self.network, layer_in(self.network, name), change.width, optimizer=self.optimizer)
        try:
            self.clock.prepare(describe(self.network), self.hyper.batch_size)
        except InputError:  # no step time of the new structure is known
            self.network, self.optimizer = before, carry(self.optimizer, self.network, before)
            self._statistics = Statistics(before)
            raise
        self.smaller.append(before)

    def _calibration(self) -> torch.Tensor | None:
        """Return the inputs of the next step, if the task can repeat them and the network accepts them."""
        if self.task.state_dict():
            return None
        inputs = self.task.batch(self.network, self.progress.position, self.hyper.batch_size).inputs
        with torch.no_grad(), evaluating(self.network):
            sound = bool(torch.isfinite(self.network(inputs)).all())
        return inputs if sound else None

    def _shrink(self) -> None:
        if not self.smaller:
            raise NotGrowable("shrink: the network has not grown")
        large, small = self.network, self.smaller.pop()
        shrink(large, small)
        self.optimizer = carry(self.optimizer, large, small)
        if self.task.scores and not self._just_shrunk():  # the largest teaches if several shrink at once
            self.teacher = Teacher(large)
        self.network = small.train()
        self.clock.prepare(describe(small), self.hyper.batch_size)

    def _just_shrunk(self) -> bool:
        return bool(self.history) and self.history[-1] == (self.progress.steps, SHRINK)

    def set(self, **values: Any) -> None:
        """Set hyper-parameters: `lr`, `momentum`, `batch_size`. A new `lr` starts to decay anew."""
        for name in values:
            if name not in Hyperparameters.__slots__:
                raise InputError(unknown("hyper-parameter", name, Hyperparameters.__slots__))
        wanted = replace(self.hyper, **values)
        self.clock.prepare(self.structure, wanted.batch_size)
        self.hyper = wanted
        if "lr" in values:
            self.progress.since_change = 0
        self._tell()

    def _tell(self) -> None:
        set_rates(self.optimizer, self.lr, self.hyper.momentum)


def _out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return "can't allocate memory" in str(error)  # the CPU's allocator has no class of its own

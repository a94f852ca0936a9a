"""The trainer: budgets, learning rates, changes, failures; and that stopping changes nothing."""

import math
from copy import deepcopy

import pytest
import torch
from torch import nn

from rota.core.errors import InputError
from rota.core.network import SHRINK, Change, Structure
from rota.training.checkpoint import load, save
from rota.training.clock import Length, ProfiledClock, WallClock
from rota.training.describe import describe
from rota.training.hyper import Decay, Hyperparameters
from rota.training.net2net import NotGrowable, deepen
from rota.training.setup import Setup
from rota.training.trainer import Trainer

CPU = torch.device("cpu")
SETUP = Setup(model="convnet2", data="digits", threads=1, hyper=Hyperparameters(batch_size=32))


class EqualSteps:
    """A profile in which each step of any structure takes the same time."""

    def __init__(self, step_s: float) -> None:
        self.step_s = step_s

    def __getitem__(self, key: tuple[str, int]) -> float:
        return self.step_s


def trainer(step_s: float = 0.1, *, setup: Setup = SETUP, seed: int = 0, **length: float) -> Trainer:
    return setup.trainer(ProfiledClock(EqualSteps(step_s)), seed=seed, length=Length(**length))


def weights(one: Trainer) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in one.network.state_dict().values()]


def same(first: Trainer, second: Trainer) -> bool:
    pairs = zip(weights(first), weights(second), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_an_epoch_is_one_pass_over_the_data_unless_told_otherwise():
    one = trainer()
    assert one.epoch_length == one.task.examples // 32
    assert trainer(steps=7).epoch_length == 7


def test_the_learning_rate_falls_with_each_whole_epoch_and_is_reset_by_a_change():
    one = trainer(steps=2)
    assert [one.epoch(evaluate=False).lr for _ in range(3)] == pytest.approx([0.01, 0.009, 0.0081])
    one.change(Change.parse("nothing"))
    assert one.lr == pytest.approx(0.00729)
    one.change(Change.parse("deepen 1"))
    assert one.lr == 0.01
    assert {group["lr"] for group in one.optimizer.param_groups} == {0.01}


def test_the_learning_rate_has_a_floor():
    assert Decay().lr(0.01, 1000) == 1e-8
    assert Decay().lr(1e-9, 0) == 1e-9  # who asks for less gets less


def test_a_profiled_clock_allows_just_the_steps_that_fit():
    one = trainer(0.1, steps=100)
    epoch = one.epoch(until_s=0.75)
    assert (epoch.ended, epoch.steps, epoch.at_s) == ("time", 7, pytest.approx(0.7))
    assert not epoch.metrics


def test_a_deeper_network_makes_fewer_steps_in_the_same_time():
    base = trainer(steps=100)
    deeper = Change.parse("deepen 1")
    grown = trainer(steps=100)
    grown.change(deeper)
    seconds = {(base.structure.fingerprint, 32): 0.1, (grown.structure.fingerprint, 32): 0.25}
    one = SETUP.trainer(ProfiledClock(seconds), seed=0, length=Length(steps=100))
    assert one.epoch(until_s=1.0).steps == 10
    one.change(deeper)
    assert one.epoch(until_s=2.0).steps == 14  # four more steps of 0.25 s
    assert one.clock.now_s() == pytest.approx(2.0)


def test_an_epoch_can_be_a_time():
    one = trainer(0.1, seconds=0.35)
    assert [one.epoch(evaluate=False).steps for _ in range(3)] == [3, 6, 9]


def test_a_structure_without_a_recorded_time_is_an_error_that_says_what_is_missing():
    with pytest.raises(InputError, match=r"no recorded time per step for structure .* at batch size 32"):
        SETUP.trainer(ProfiledClock({}), seed=0)


def test_a_change_to_what_nobody_has_measured_leaves_everything_as_it_was():
    base = trainer()
    one = SETUP.trainer(
        ProfiledClock({(base.structure.fingerprint, 32): 0.1}), seed=0, length=Length(steps=3)
    )
    unchanged = SETUP.trainer(
        ProfiledClock({(base.structure.fingerprint, 32): 0.1}), seed=0, length=Length(steps=3)
    )
    for each in (one, unchanged):
        each.epoch(evaluate=False)
    with pytest.raises(InputError, match="no recorded time"):
        one.change(Change.parse("deepen 0"))
    with pytest.raises(InputError, match="no recorded time"):
        one.set(batch_size=64, lr=1.0)
    assert (one.structure, one.history, one.smaller, one.hyper) == (base.structure, [], [], SETUP.hyper)
    for each in (one, unchanged):
        each.epoch(evaluate=False)
    assert same(one, unchanged)  # the optimiser has lost nothing either


def test_the_wall_clock_stands_still_while_training_is_stopped():
    clock = WallClock(CPU)
    clock.load_state_dict({"now_s": 100.0})
    assert 100.0 <= clock.now_s() < 101.0
    again = WallClock(CPU)
    again.load_state_dict(clock.state_dict())
    assert 100.0 <= again.now_s() < 102.0


def test_a_change_of_the_allocation_ends_the_epoch_early():
    one = trainer(0.1, steps=10)
    epoch = one.epoch(interrupted=lambda now_s: now_s > 0.45)
    assert (epoch.ended, epoch.steps, epoch.number) == ("allocation", 5, 0)
    assert one.lr == 0.01  # only a whole epoch counts
    assert one.epoch(evaluate=False).number == 1


@pytest.mark.parametrize("stop", [1, 7, 10, 13])
def test_stopped_and_resumed_equals_not_stopped_bit_for_bit(tmp_path, stop):
    def train(one: Trainer, until_steps: int) -> list[object]:
        seen = []
        while True:
            epoch = one.epoch(until_steps=until_steps)
            if epoch.ended != "whole":
                return seen
            seen.append(epoch)

    unstopped = trainer(steps=5)
    expected = train(unstopped, 23)

    first = trainer(steps=5)
    before = train(first, stop)
    save(tmp_path / "checkpoint.pt", first)
    torch.rand(3)  # what happens in between does not matter
    second = trainer(steps=5, seed=0)
    load(tmp_path / "checkpoint.pt", second)
    after = train(second, 23)

    assert before + after == expected
    assert same(unstopped, second)
    assert unstopped.optimizer.state_dict()["param_groups"] == second.optimizer.state_dict()["param_groups"]


def test_resuming_is_exact_through_growth_shrinking_and_distillation(tmp_path):
    def begin() -> Trainer:
        return trainer(steps=4)

    def act(one: Trainer, part: int) -> None:
        if part == 0:
            one.change(Change.parse("deepen 0"))
            one.change(Change.parse("widen 1 48"))
        elif part == 1:
            one.change(SHRINK)
            one.change(SHRINK)
        one.epoch(evaluate=False, until_steps=one.progress.steps + 3)

    unstopped = begin()
    for part in range(4):
        act(unstopped, part)

    one = begin()
    for part in range(4):
        act(one, part)
        save(tmp_path / f"{part}.pt", one, part=part)
        one = begin()
        assert load(tmp_path / f"{part}.pt", one) == {"part": part}
    assert same(unstopped, one)
    assert one.teacher is not None
    assert one.teacher.weight == unstopped.teacher.weight < 0.75
    assert [str(made.change) for made in one.history] == ["deepen 0", "widen 1 48", "shrink", "shrink"]


def test_under_a_profiled_clock_resuming_is_exact_too(tmp_path):
    unstopped, first, second = (trainer(0.1, seconds=0.7) for _ in range(3))
    while unstopped.epoch(until_s=2.0, evaluate=False).ended == "whole":
        pass
    while first.epoch(until_s=1.15, evaluate=False).ended == "whole":
        pass
    save(tmp_path / "c.pt", first)
    load(tmp_path / "c.pt", second)
    while second.epoch(until_s=2.0, evaluate=False).ended == "whole":
        pass
    assert same(unstopped, second)
    assert unstopped.clock.now_s() == second.clock.now_s()
    assert unstopped.progress == second.progress


def test_the_same_seed_trains_the_same_network_and_another_does_not():
    first, second, other = trainer(steps=3), trainer(steps=3), trainer(steps=3, seed=1)
    for one in (first, second, other):
        one.epoch(evaluate=False)
    assert same(first, second)
    assert not same(first, other)


def test_hyper_parameters_change_between_intervals():
    one = trainer(steps=3)
    one.epoch(evaluate=False)
    state = {id(p): s["exp_avg"].clone() for p, s in one.optimizer.state.items()}
    one.set(lr=0.002, momentum=0.8, batch_size=16)
    group = one.optimizer.param_groups[0]
    assert (group["lr"], group["betas"]) == (0.002, (0.8, 0.999))
    assert all(torch.equal(state[id(p)], s["exp_avg"]) for p, s in one.optimizer.state.items())
    position = one.progress.position
    one.epoch(evaluate=False)
    assert one.progress.position == position + 3 * 16


def test_an_epoch_ends_even_if_a_larger_batch_size_makes_it_shorter_than_it_is():
    one = trainer()
    one.set(batch_size=16)
    length = one.epoch_length
    one.epoch(until_steps=length - 2)
    one.set(batch_size=64)
    assert one.epoch(until_steps=2 * length).ended == "whole"
    assert one.progress.steps == length - 2


def test_a_budget_of_steps_that_is_already_over_trains_nothing():
    one = trainer(steps=10)
    one.epoch(until_steps=5)
    assert one.epoch(until_steps=3).ended == "steps"
    assert one.progress.steps == 5


def test_a_new_layer_is_calibrated_on_the_batch_that_comes_next():
    one = trainer(steps=3)
    one.epoch(evaluate=False)
    twin = deepcopy(one.network)
    deepen(twin, "conv2", calibration=one.task.batch(twin, one.progress.position, 32).inputs)
    one.change(Change.parse("deepen 1"))
    pairs = zip(one.network.state_dict().values(), twin.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_shrinking_keeps_what_the_optimiser_knows_of_the_layers_that_stay():
    one = trainer(steps=3)
    one.change(Change.parse("deepen 1"))
    one.epoch(evaluate=False)
    before = {name: one.optimizer.state[p]["exp_avg"].clone() for name, p in one.network.named_parameters()}
    one.change(SHRINK)
    after = {name: one.optimizer.state[p]["exp_avg"] for name, p in one.network.named_parameters()}
    assert len(after) < len(before)
    assert all(torch.equal(before[name], value) for name, value in after.items())


def test_the_loss_of_an_epoch_is_the_mean_of_its_steps():
    one = trainer(steps=2)
    losses = []
    own = one.task.loss

    def watched(outputs, batch):
        losses.append(own(outputs, batch))
        return losses[-1]

    one.task = Watched(one.task, watched)
    assert one.epoch(evaluate=False).loss == pytest.approx((losses[0].item() + losses[1].item()) / 2)


class Watched:
    """A task whose loss is noted."""

    def __init__(self, task, loss):
        self._task, self.loss = task, loss

    def __getattr__(self, name):
        return getattr(self._task, name)


def test_a_network_that_plays_is_grown_without_a_game_and_shrunk_without_a_teacher():
    setup = Setup(model="a2c", threads=1, hyper=Hyperparameters(batch_size=16))
    one = setup.trainer(ProfiledClock(EqualSteps(0.1)), seed=0, length=Length(steps=2))
    one.epoch(evaluate=False)
    before = str(one.task.state_dict())
    one.change(Change.parse("deepen 0"))
    assert str(one.task.state_dict()) == before
    one.change(SHRINK)
    assert one.teacher is None
    assert one.epoch(evaluate=False).ended == "whole"


@pytest.mark.parametrize(
    ("name", "value"), [("lr", 0.0), ("lr", math.nan), ("momentum", 1.0), ("batch_size", 0)]
)
def test_hyper_parameters_out_of_range_are_refused(name, value):
    with pytest.raises(InputError, match=name):
        Hyperparameters(**{name: value})


def test_a_loss_that_is_not_a_number_is_a_failed_epoch_and_keeps_the_weights():
    one = trainer(steps=10)
    one.epoch(until_steps=2)
    before = [parameter.clone() for parameter in one.network.parameters()]
    one.task = Poisoned(one.task)
    epoch = one.epoch()
    assert epoch.ended == "failed"
    assert "the loss is nan at step 3" in epoch.failure
    assert all(torch.equal(a, b) for a, b in zip(before, one.network.parameters(), strict=True))


def test_a_failed_step_leaves_the_running_statistics_too():
    one = trainer(steps=10)
    one.epoch(until_steps=2)
    before = weights(one)
    good = one.task
    one.task = Poisoned(good)
    assert one.epoch().ended == "failed"
    one.task = good
    assert all(torch.equal(a, b) for a, b in zip(before, weights(one), strict=True))
    assert one.epoch().ended == "whole"


def test_a_failed_step_leaves_them_too_after_a_change_that_was_refused():
    one = SETUP.trainer(WallClock(CPU), seed=0, length=Length(steps=10))
    one.clock = ProfiledClock({(one.structure.fingerprint, 32): 0.1})
    one.clock.prepare(one.structure, 32)
    one.epoch(until_steps=2)
    with pytest.raises(InputError, match="no recorded time per step"):
        one.change(Change.parse("deepen 0"))
    before = weights(one)
    one.task = Poisoned(one.task)
    assert one.epoch().ended == "failed"
    assert all(torch.equal(a, b) for a, b in zip(before, weights(one), strict=True))


def test_to_widen_what_is_as_wide_already_is_to_do_nothing():
    one = trainer(steps=2)
    one.change(Change.parse("widen 0 48"))
    one.epoch()
    before, rate = weights(one), one.lr
    for text in ("widen 0 48", "widen 0 40"):
        one.change(Change.parse(text))
    assert len(one.history) == len(one.smaller) == 1
    assert one.lr == rate  # which a change would have reset
    assert all(torch.equal(a, b) for a, b in zip(before, weights(one), strict=True))


class Poisoned:
    """A task whose batches have a NaN in them."""

    def __init__(self, task):
        self._task = task

    def __getattr__(self, name):
        return getattr(self._task, name)

    def batch(self, network, position, size):
        batch = self._task.batch(network, position, size)
        batch.inputs[0, 0, 0, 0] = math.nan
        return batch


def test_too_little_memory_is_a_failed_epoch():
    one = trainer(steps=10)
    one.network.add_module("hungry", Hungry())
    epoch = one.epoch()
    assert epoch.ended == "failed"
    assert "out of memory at batch size 32" in epoch.failure


def test_too_little_memory_to_derive_the_loss_leaves_the_running_statistics_too():
    one = trainer(steps=10)
    one.network.add_module("hungry", Hungry(only_in="derivation"))
    before = weights(one)
    epoch = one.epoch()
    assert (epoch.ended, epoch.steps) == ("failed", 0)
    assert all(torch.equal(a, b) for a, b in zip(before, weights(one), strict=True))


def test_a_batch_that_cannot_be_normalised_is_an_error_that_says_what_to_do():
    one = trainer(setup=Setup(model="resnet18", threads=1, hyper=Hyperparameters(batch_size=1)))
    with pytest.raises(InputError, match=r"batch_size is 1; .* give a larger batch_size"):
        one.epoch(until_steps=1)


def test_too_little_memory_to_evaluate_is_a_failed_epoch_too():
    one = trainer(steps=1)
    one.network.add_module("hungry", Hungry(only_in="evaluation"))
    epoch = one.epoch()
    assert (epoch.ended, epoch.number, epoch.metrics) == ("failed", 0, {})
    one.network.hungry.only_in = "never"
    assert one.epoch().number == 1


class Hungry(nn.Module):
    """Asks for more memory than any machine has."""

    def __init__(self, only_in="training"):
        super().__init__()
        self.only_in = only_in

    def forward(self, values):
        if self.only_in == ("training" if self.training else "evaluation"):
            return values + torch.empty(1 << 60).sum()
        if self.only_in == "derivation" and values.requires_grad:
            values.register_hook(lambda gradient: gradient + torch.empty(1 << 60).sum())
        return values


def test_another_error_is_not_swallowed():
    one = trainer(steps=10)
    one.network.add_module("wrong", nn.Linear(3, 3))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        one.epoch()


def test_a_change_that_cannot_be_made_leaves_everything_as_it_was():
    one = trainer(steps=2)
    one.epoch(evaluate=False)
    before, structure, lr = weights(one), one.structure, one.lr
    for text in ("deepen 3", "widen 0 8", "shrink"):
        with pytest.raises(NotGrowable):
            one.change(Change.parse(text))
    assert all(torch.equal(a, b) for a, b in zip(before, weights(one), strict=True))
    assert (one.structure, one.lr, one.history, one.smaller) == (structure, lr, [], [])


def test_shrinking_gives_the_structure_from_before_and_a_teacher():
    one = trainer(steps=2)
    structure = one.structure
    one.change(Change.parse("deepen 0"))
    one.change(Change.parse("deepen 1"))
    largest = one.structure
    one.epoch(evaluate=False)
    one.change(SHRINK)
    one.change(SHRINK)
    assert one.structure == structure
    assert describe(one.teacher.network) == largest
    one.epoch(evaluate=False)
    assert one.teacher.weight == pytest.approx(0.75 * 0.25)


def test_the_teacher_goes_when_it_has_no_say_left():
    one = trainer(steps=1)
    one.change(Change.parse("deepen 1"))
    one.change(SHRINK)
    for _ in range(6):
        one.epoch(evaluate=False)
    assert one.teacher is None


def test_structures_are_told_to_the_clock():
    seen: list[tuple[Structure, int]] = []

    class Listening(ProfiledClock):
        def prepare(self, structure: Structure, batch_size: int) -> None:
            seen.append((structure, batch_size))
            super().prepare(structure, batch_size)

    one = SETUP.trainer(Listening(EqualSteps(0.1)), seed=0)
    one.change(Change.parse("deepen 0"))
    one.set(batch_size=8)
    assert [size for _, size in seen] == [32, 32, 8]
    assert len({structure.fingerprint for structure, _ in seen}) == 2

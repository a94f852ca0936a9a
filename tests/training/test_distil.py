"""Distillation: its numbers by hand, and on real data what it is worth to a network that was made smaller."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from math import log

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from rota.core.errors import ConfigError, InputError
from rota.training.distil import Teacher, soft_target_loss
from rota.training.models.networks import linear_block
from rota.training.net2net import blocks, deepen, shrink
from rota.training.task import Batch


class Says(nn.Module):
    """Answers with the same logits whatever it is asked, and counts how often it is asked."""

    def __init__(self, *logits: float) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.tensor([logits]))
        self.asked = 0

    def forward(self, inputs: Tensor) -> Tensor:
        self.asked += 1
        return self.logits.expand(len(inputs), -1)


# At temperature 2 this teacher says (3/4, 1/4), and a student with equal logits says (1/2, 1/2).
TEACHER = (2 * log(3), 0.0)
DIVERGENCE = 0.75 * log(0.75 / 0.5) + 0.25 * log(0.25 / 0.5)
BATCH = Batch(torch.zeros(1, 4), torch.tensor([0]))


def test_soft_targets_by_hand() -> None:
    loss = soft_target_loss(torch.zeros(1, 2), torch.tensor([TEACHER]), temperature=2.0)
    assert loss.item() == pytest.approx(4 * DIVERGENCE, rel=1e-6)
    assert soft_target_loss(torch.tensor([TEACHER]), torch.tensor([TEACHER]), 2.0).item() == pytest.approx(
        0, abs=1e-6
    )


def test_the_loss_by_hand() -> None:
    student = torch.zeros(1, 2, requires_grad=True)
    hard_loss = functional.cross_entropy(student, BATCH.targets)
    loss = Teacher(Says(*TEACHER)).loss(student, BATCH, hard_loss)
    assert loss.item() == pytest.approx(0.75 * 4 * DIVERGENCE + 0.25 * log(2), rel=1e-6)
    loss.backward()
    # w · T · (student − teacher) + (1 − w) · (student − truth) = 0.75 · 2 · (−1/4) + 0.25 · (−1/2)
    assert student.grad is not None
    assert student.grad.tolist()[0] == pytest.approx([-0.5, 0.5], rel=1e-5)


def test_texts_are_averaged_over_examples_and_places() -> None:
    student = torch.zeros(3, 5, 2)
    teacher = torch.tensor(TEACHER).expand(3, 5, 2)
    assert soft_target_loss(student, teacher, 2.0).item() == pytest.approx(4 * DIVERGENCE, rel=1e-6)


def test_the_teacher_is_not_trained_and_stays_in_evaluation_mode() -> None:
    network = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2))
    before = deepcopy(network.state_dict())
    student = torch.zeros(8, 2, requires_grad=True)
    loss = Teacher(network.train()).loss(student, Batch(torch.randn(8, 4) + 3, None), torch.tensor(0.0))
    loss.backward()
    assert not any(module.training for module in network.modules())
    assert all(parameter.grad is None for parameter in network.parameters())
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_the_weight_falls_each_epoch_until_the_teacher_is_spent() -> None:
    network = Says(*TEACHER)
    teacher = Teacher(network)
    weights = []
    while not teacher.spent:
        weights.append(teacher.weight)
        teacher.epoch_over()
    assert weights == [0.75, 0.1875, 0.046875, 0.01171875, 0.0029296875]
    hard_loss = torch.tensor(1.5)
    assert teacher.loss(torch.zeros(1, 2), BATCH, hard_loss) is hard_loss
    assert network.asked == 0


def test_a_saved_teacher_goes_on_where_it_was() -> None:
    teacher, other = Teacher(Says(*TEACHER)), Teacher(Says(*TEACHER))
    teacher.epoch_over()
    other.load_state_dict(teacher.state_dict())
    assert other.weight == 0.1875


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"temperature": 0.0}, "temperature 0.0 is not a number above 0"),
        ({"temperature": float("nan")}, "temperature nan is not a number above 0"),
        ({"weight": 1.5}, "weight 1.5 is not between 0 and 1"),
        ({"decay": -0.25}, "decay -0.25 is not between 0 and 1"),
    ],
)
def test_settings_out_of_range(settings: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Teacher(Says(0.0, 0.0), **settings)


def test_a_teacher_of_other_classes() -> None:
    with pytest.raises(InputError, match=r"shape \(1, 2\), the teacher's \(1, 3\)"):
        Teacher(Says(0.0, 0.0, 0.0)).loss(torch.zeros(1, 2), BATCH, torch.tensor(0.0))


def test_a_student_that_answers_with_more_than_logits() -> None:
    with pytest.raises(InputError, match="one tensor of logits"):
        Teacher(Says(0.0, 0.0)).loss((torch.zeros(1, 2), torch.zeros(1)), BATCH, torch.tensor(0.0))


# What it is worth. A network is trained on digits, deepened, trained on and shrunk again; then room is short,
# and so are batches. The small network goes on with and without a teacher, from the same weights and over the
# same batches, at the learning rate that every change of a network resets.

SEEDS, ORDERS, STEPS, LOOK_EVERY = 5, 2, 80, 8


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads that wait for each other on a busy machine make steps this small ten times as slow."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@dataclass(frozen=True)
class Digits:
    inputs: Tensor
    targets: Tensor


def test_a_shrunken_network_learns_faster_with_the_network_it_came_from() -> None:
    """On digits never trained on and over the whole run, in ten pairs of runs, by more than chance."""
    accuracy, loss = (_figures("grown") - _figures("none")).mean(1).unbind(1)
    assert accuracy.mean() > max(0.008, 3 * _standard_error(accuracy))
    assert -loss.mean() > max(0.02, 3 * _standard_error(loss))
    assert int((accuracy > 0).sum()) >= 8
    assert int((loss < 0).sum()) >= 8


def test_a_teacher_that_knows_nothing_is_no_help() -> None:
    accuracy, loss = (_figures("fresh") - _figures("none")).mean((0, 1))
    assert accuracy < -0.01
    assert loss > 0.01


def test_without_a_teacher_the_shrunken_network_learns_too() -> None:
    """So the comparison is with training that works, not with training that fails."""
    before = [_evaluated(_shrunken(seed)[1], _split(seed)[1]) for seed in range(SEEDS)]
    accuracy, loss = _figures("none")[:, -1].mean(0) - torch.tensor(before).mean(0)
    assert accuracy > 0.005
    assert loss < 0


@cache
def _figures(teacher: str) -> Tensor:
    """Accuracy and loss at each look at each run: runs × looks × 2."""
    return torch.tensor([_run(seed, order, teacher) for seed in range(SEEDS) for order in range(ORDERS)])


def _run(seed: int, order: int, kind: str) -> list[tuple[float, float]]:
    grown, small = _shrunken(seed)
    network = {"grown": grown, "fresh": _network(seed + 50), "none": None}[kind]
    teacher = None if network is None else Teacher(network)
    train, validation = _split(seed)
    return _trained(deepcopy(small), train, STEPS, 8, 100 * order + seed, teacher, validation)


@cache
def _shrunken(seed: int) -> tuple[nn.Module, nn.Module]:
    """The grown network, and the small one with what it can take over."""
    train, _ = _split(seed)
    small = _network(seed)
    _trained(small, train, 60, 64, seed + 1000)
    grown = deepcopy(small)
    for block in blocks(grown) * 2:
        deepen(grown, block)
    _trained(grown, train, 300, 64, seed + 2000)
    shrink(grown, small)
    return grown, small


def _network(seed: int) -> nn.Module:
    network = nn.Sequential(linear_block(64, 12), linear_block(12, 12), nn.Linear(12, 10))
    generator = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, nn.Linear):
            nn.init.kaiming_uniform_(module.weight, generator=generator)
            nn.init.zeros_(module.bias)
    return network


@cache
def _split(seed: int) -> tuple[Digits, Digits]:
    images, labels = (torch.from_numpy(part) for part in load_digits(return_X_y=True))
    inputs = ((images - images.mean()) / images.std()).float()
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(seed))
    train, validation = order[:1000], order[1000:]
    return Digits(inputs[train], labels[train]), Digits(inputs[validation], labels[validation])


def _trained(
    network: nn.Module,
    data: Digits,
    steps: int,
    batch_size: int,
    seed: int,
    teacher: Teacher | None = None,
    validation: Digits | None = None,
) -> list[tuple[float, float]]:
    """Adam at 0.01, × 0.9 per epoch; gives accuracy and loss on the validation digits at every look."""
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(seed)
    per_epoch, looks = len(data.inputs) // batch_size, []
    for step in range(steps):
        if step % per_epoch == 0:
            order = torch.randperm(len(data.inputs), generator=generator)
        chosen = order[step % per_epoch * batch_size :][:batch_size]
        batch = Batch(data.inputs[chosen], data.targets[chosen])
        outputs = network(batch.inputs)
        loss = functional.cross_entropy(outputs, batch.targets)
        optimizer.zero_grad()
        (loss if teacher is None else teacher.loss(outputs, batch, loss)).backward()
        optimizer.step()
        if (step + 1) % per_epoch == 0:
            _epoch_over(optimizer, teacher)
        if validation is not None and (step + 1) % LOOK_EVERY == 0:
            looks.append(_evaluated(network, validation))
    return looks


def _epoch_over(optimizer: torch.optim.Optimizer, teacher: Teacher | None) -> None:
    optimizer.param_groups[0]["lr"] *= 0.9
    if teacher is not None:
        teacher.epoch_over()


def _evaluated(network: nn.Module, data: Digits) -> tuple[float, float]:
    with torch.no_grad():
        outputs = network(data.inputs)
    accuracy = (outputs.argmax(1) == data.targets).float().mean()
    return accuracy.item(), functional.cross_entropy(outputs, data.targets).item()


def _standard_error(numbers: Tensor) -> float:
    return float(numbers.std() / len(numbers) ** 0.5)

"""Classification: batches from the stream, and how well a network does."""

import math

import pytest
import torch
from torch import nn

from rota.core.errors import ConfigError
from rota.training import data
from rota.training.data.images import Images, Splits, Stream
from rota.training.task import Task
from rota.training.tasks.supervised import Classification

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def digits() -> Splits:
    return data.load("digits")


@pytest.fixture
def coloured() -> Splits:
    """30 random images."""
    chance = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (30, 3, 16, 16), dtype=torch.uint8, generator=chance)
    parts = [Images(images[start : start + 10], torch.arange(10)) for start in (0, 10, 20)]
    return Splits("noise", tuple("abcdefghij"), *parts)


class Constant(nn.Module):
    """Answers every image with the same scores, and remembers in which mode it was asked."""

    def __init__(self, scores: list[float]) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.tensor(scores))
        self.modes: set[tuple[bool, bool]] = set()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.modes.add((self.training, torch.is_grad_enabled()))
        return self.scores.expand(len(images), -1)


def linear(task: Task) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(task.inputs), task.outputs))


def test_it_says_what_goes_in_and_comes_out(digits):
    task: Task = Classification(digits, device=CPU)
    assert (task.inputs, task.outputs, task.metric, task.examples) == ((1, 8, 8), 10, "accuracy", 1294)


def test_a_batch_is_what_the_stream_says_normalised_by_the_training_images(digits):
    task = Classification(digits, device=CPU, seed=5)
    found = task.batch(nn.Identity(), 1290, 8)
    order = torch.from_numpy(Stream(1294, seed=5).take(1290, 8).order)
    pixels = digits.train.images.double()
    expected = (pixels[order] - pixels.mean()) / pixels.std(correction=0)
    torch.testing.assert_close(found.inputs, expected.float())
    assert found.targets.equal(digits.train.labels[order])
    assert found.targets.dtype == torch.int64


def test_one_pass_shows_every_training_image_once(digits):
    task = Classification(digits, device=CPU)
    labels = torch.cat([task.batch(nn.Identity(), start, 2).targets for start in range(0, 1294, 2)])
    assert labels.bincount().equal(digits.train.labels.bincount())


@pytest.mark.parametrize("augment", [False, True])
def test_batches_depend_on_seed_and_position_only(coloured, augment):
    one, other = (Classification(coloured, device=CPU, seed=1, augment=augment) for _ in range(2))
    one.batch(nn.Identity(), 7, 5)
    whole = one.batch(nn.Identity(), 0, 25)
    torch.manual_seed(99)
    part = other.batch(nn.Identity(), 8, 9)
    assert part.inputs.equal(whole.inputs[8:17])
    assert part.targets.equal(whole.targets[8:17])
    reseeded = Classification(coloured, device=CPU, seed=2, augment=augment).batch(nn.Identity(), 0, 25)
    assert not reseeded.inputs.equal(whole.inputs)


def test_a_batch_leaves_the_global_generator_alone(coloured):
    before = torch.get_rng_state()
    Classification(coloured, device=CPU, augment=True).batch(nn.Identity(), 0, 25)
    assert torch.get_rng_state().equal(before)


def test_augmentation_changes_the_images_and_not_what_is_on_them(coloured):
    plain, moved = (Classification(coloured, device=CPU, augment=augment) for augment in (False, True))
    one, other = (task.batch(nn.Identity(), 0, 20) for task in (plain, moved))
    assert one.targets.equal(other.targets)
    assert not one.inputs.equal(other.inputs)
    assert one.inputs.shape == other.inputs.shape
    assert plain.evaluate(linear(plain)) == moved.evaluate(linear(moved))


def test_digits_are_never_seen_in_a_mirror(digits):
    task = Classification(digits, device=CPU, augment=True)
    found = task.batch(nn.Identity(), 0, 200)
    drawn = Stream(1294, seed=0, margin=1).take(0, 200)
    still = torch.from_numpy((drawn.shifts == 1).all(0) & drawn.mirrored)
    assert still.sum() > 5
    plain = Classification(digits, device=CPU).batch(nn.Identity(), 0, 200)
    assert found.inputs[still].equal(plain.inputs[still])


def test_the_loss_is_the_mean_cross_entropy(digits):
    task = Classification(digits, device=CPU)
    batch = task.batch(nn.Identity(), 0, 4)
    assert task.loss(torch.zeros(4, 10), batch).item() == pytest.approx(math.log(10))


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_a_constant_answer_is_right_for_one_class(digits, split):
    task = Classification(digits, device=CPU)
    scores = [0.0] * 10
    scores[3] = 2.0
    labels = getattr(digits, split).labels
    share = (labels == 3).double().mean().item()
    found = task.evaluate(Constant(scores), split)
    normaliser = math.log(9 + math.exp(2))
    assert found == {"accuracy": pytest.approx(share), "loss": pytest.approx(normaliser - 2 * share)}


def test_evaluation_looks_at_the_images_as_they_are(digits):
    task = Classification(digits, device=CPU, augment=True)
    network = linear(task)
    pixels = digits.train.images.double()
    inputs = ((digits.test.images.double() - pixels.mean()) / pixels.std(correction=0)).float()
    with torch.no_grad():
        expected = (network(inputs).argmax(1) == digits.test.labels).double().mean().item()
    assert task.evaluate(network, "test")["accuracy"] == pytest.approx(expected)


def test_evaluation_is_without_gradients_and_leaves_every_module_in_its_mode(digits):
    constant = Constant([0.0] * 10)
    network = nn.Sequential(nn.BatchNorm2d(1), nn.Dropout(), constant)
    network[1].eval()
    before = network[0].running_mean.clone()
    Classification(digits, device=CPU).evaluate(network)
    assert constant.modes == {(False, False)}
    assert [module.training for module in network] == [True, False, True]
    assert network.training
    assert network[0].running_mean.equal(before)


def test_the_modes_come_back_when_evaluation_fails(digits):
    network = nn.Sequential(nn.Linear(3, 3))
    with pytest.raises(RuntimeError):
        Classification(digits, device=CPU).evaluate(network)
    assert network.training
    assert network[0].training


def test_an_answer_that_is_not_a_number_is_wrong(digits):
    found = Classification(digits, device=CPU).evaluate(Constant([math.nan] * 10))
    assert found["accuracy"] == 0
    assert math.isnan(found["loss"])


def test_an_unknown_split_is_said(digits):
    with pytest.raises(ConfigError, match=r"unknown split 'tests'. Did you mean 'test'\?"):
        Classification(digits, device=CPU).evaluate(nn.Identity(), "tests")


def test_it_has_no_state(digits):
    task = Classification(digits, device=CPU)
    assert task.state_dict() == {}
    task.load_state_dict({})


def test_a_linear_network_learns_the_digits(digits):
    task = Classification(digits, device=CPU)
    network = linear(task)
    weights = list(network.parameters())
    for step in range(100):
        batch = task.batch(network, step * 64, 64)
        slopes = torch.autograd.grad(task.loss(network(batch.inputs), batch), weights)
        with torch.no_grad():
            for weight, slope in zip(weights, slopes, strict=True):
                weight -= 0.1 * slope
    assert task.evaluate(network, "test")["accuracy"] > 0.9

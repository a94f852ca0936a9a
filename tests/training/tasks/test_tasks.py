"""The task that goes with a model."""

import pytest
import torch

from rota.core.errors import ConfigError
from rota.training.models.registry import MODELS, build
from rota.training.tasks import task_of
from rota.training.tasks.reinforcement import A2C, DQN
from rota.training.tasks.supervised import Classification, Language

CPU = torch.device("cpu")
LIGHT = ["convnet2", "feedforward1", "transformer", "a2c", "dqn"]


@pytest.mark.parametrize("name", LIGHT)
def test_a_model_fits_the_task_that_it_is_trained_for(name):
    task = task_of(name, device=CPU)
    network = build(name, task.inputs, task.outputs)
    batch = task.batch(network, 0, 8)
    task.loss(network(batch.inputs), batch).backward()
    assert all(weight.grad is not None for weight in network.parameters())
    assert task.metric in task.evaluate(network)
    assert task.examples > 8


@pytest.mark.parametrize(
    ("model", "data", "kind"),
    [
        ("convnet2", None, Classification),
        ("convnet2", "digits", Classification),
        ("transformer", None, Language),
        ("transformer", "stdlib", Language),
        ("a2c", "cartpole", A2C),
        ("dqn", None, DQN),
    ],
)
def test_the_model_decides_the_kind_of_task(model, data, kind):
    assert type(task_of(model, data, device=CPU)) is kind


def test_images_come_in_the_size_that_was_asked_for():
    assert task_of("convnet2", "digits", device=CPU, size=6, validation=100).inputs == (1, 6, 6)


def test_the_seed_reaches_the_task():
    network = build("convnet2", (1, 8, 8), 10)
    one, other = (task_of("convnet2", device=CPU, seed=seed).batch(network, 0, 8) for seed in (0, 1))
    assert not torch.equal(one.inputs, other.inputs)


@pytest.mark.parametrize("model", [name for name in MODELS if MODELS[name].task != "classification"])
class TestModelsThatTakeNoImages:
    def test_refuse_a_data_set_of_images(self, model):
        with pytest.raises(
            ConfigError, match=rf"^data 'cifar10': model '{model}' learns from .* leave data out"
        ):
            task_of(model, "cifar10", device=CPU)

    @pytest.mark.parametrize("settings", [{"size": 16}, {"augment": True}, {"validation": 100}])
    def test_refuse_what_is_for_images(self, model, settings):
        with pytest.raises(ConfigError, match=rf"^model '{model}': takes no images; leave out size, augment"):
            task_of(model, device=CPU, **settings)


def test_an_unknown_model_is_refused():
    with pytest.raises(ConfigError, match=r"^unknown model 'transfomer'\. Did you mean 'transformer'"):
        task_of("transfomer", device=CPU)

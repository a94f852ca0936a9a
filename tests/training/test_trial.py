"""Real networks as trials: the same comes of them on whatever worker, after whatever was there before."""

import io
import math

import pytest
import torch

from rota.core.errors import ConfigError, InputError
from rota.training.trial import load_exported, network

SETTINGS = {"model": "feedforward1", "data": "digits", "optimizer": "sgd", "threads": 1, "device": "cpu"}
HYPER = {"lr": 0.05, "momentum": 0.8, "batch_size": 32}


@pytest.fixture
def trial():
    return network(SETTINGS, 0)


def trained(trial, number, *parts):
    trial.begin(number)
    for steps, hyper in parts:
        trial.train(steps, hyper, ())
    return trial.save()


def same(one, other):
    """Whether two checkpoints hold the same, to the last bit; how they were packed does not matter."""
    return plain(one) == plain(other)


def plain(content):
    def of(value):
        if isinstance(value, torch.Tensor):
            return value.tolist()
        if isinstance(value, dict):
            return {name: of(each) for name, each in value.items()}
        return [of(each) for each in value] if isinstance(value, list | tuple) else value

    return of(torch.load(io.BytesIO(content), weights_only=True))


def test_it_learns(trial):
    trial.begin(0)
    before = trial.evaluate()
    trial.train(60, HYPER, ())
    assert before < 0.4
    assert trial.evaluate() > 0.7


def test_what_comes_of_a_part_does_not_depend_on_what_the_worker_did_before(trial):
    whole = trained(trial, 3, (40, HYPER))
    trained(trial, 5, (10, {**HYPER, "lr": 0.5}))
    halfway = trained(trial, 3, (17, HYPER))
    trained(trial, 5, (3, HYPER))
    trial.load(halfway)
    trial.train(23, HYPER, ())
    assert same(trial.save(), whole)
    other = network(SETTINGS, 0)
    other.load(halfway)
    other.train(23, HYPER, ())
    assert same(other.save(), whole)
    assert other.evaluate() == trial.evaluate()


def test_trials_and_seeds_begin_with_weights_of_their_own(trial):
    first = trained(trial, 0, (1, HYPER))
    assert same(trained(trial, 0, (1, HYPER)), first)
    assert not same(trained(trial, 1, (1, HYPER)), first)
    assert not same(trained(network(SETTINGS, 1), 0, (1, HYPER)), first)


def test_hyper_parameters_change_between_parts(trial):
    in_two = trained(trial, 0, (10, HYPER), (10, HYPER))
    for name, value in (("lr", 0.01), ("momentum", 0.1), ("batch_size", 16)):
        assert not same(trained(trial, 0, (10, HYPER), (10, {**HYPER, name: value})), in_two)
    assert same(trained(trial, 0, (20, HYPER)), in_two)


def test_a_clone_takes_over_the_network_as_it_has_become_and_may_change_it_further(trial):
    trial.begin(0)
    trial.train(30, HYPER, ("deepen 0",))
    donor, was = trial.save(), trial.evaluate()
    trial.begin(1)
    trial.load(donor)
    assert trial.evaluate() == was
    trial.train(10, {**HYPER, "lr": 0.01}, ("deepen 0", "widen 0 160"))
    grown = trial.save()
    assert len(grown) > len(donor)
    trial.load(grown)
    trial.train(1, HYPER, ("deepen 0", "widen 0 160"))


def test_changes_that_do_not_go_on_from_those_that_were_made_are_refused(trial):
    trial.begin(0)
    trial.train(1, HYPER, ("deepen 0",))
    with pytest.raises(InputError, match="does not begin with"):
        trial.train(1, HYPER, ("widen 0 160",))


def test_a_trial_that_diverges_is_as_good_as_it_was_before_that(trial):
    trial.begin(0)
    trial.train(30, {**HYPER, "lr": 1e30}, ())
    assert 0.0 <= trial.evaluate() < 0.5
    assert not math.isnan(trial.evaluate())


def test_what_cannot_be_trained_is_said_where_it_is_configured():
    with pytest.raises(ConfigError, match=r"training: unknown key 'modell'. Did you mean 'model'"):
        network({"modell": "convnet2"}, 0)


def test_a_hyper_parameter_that_there_is_not_is_an_error(trial):
    trial.begin(0)
    with pytest.raises(InputError, match="unknown hyper-parameter 'rate'"):
        trial.train(1, {"rate": 0.1}, ())


def test_a_batch_size_from_a_range_is_an_error_that_says_what_to_give(trial):
    trial.begin(0)
    with pytest.raises(ConfigError, match=r"batch_size is 57.3; it must be a whole number: .* values = \["):
        trial.train(1, {**HYPER, "batch_size": 57.3}, ())
    trial.train(1, {**HYPER, "batch_size": 48.0}, ())
    assert trial.steps == 1


def test_what_does_not_fit_into_memory_is_an_error(trial, monkeypatch):
    def full(*_):
        raise MemoryError

    trial.begin(0)
    monkeypatch.setattr(trial._trainer.task, "batch", full)
    with pytest.raises(MemoryError, match="out of memory at batch size 32"):
        trial.train(1, HYPER, ())


def test_the_network_can_be_loaded_from_what_was_saved(trial, tmp_path):
    trial.begin(0)
    trial.train(20, HYPER, ("deepen 0",))
    file = tmp_path / "best.pt"
    file.write_bytes(trial.save())
    state = torch.load(file, weights_only=True)
    assert state["hyper"]["lr"] == HYPER["lr"]
    assert state["extra"]["changes"] == ["deepen 0"]
    assert state["extra"]["training"]["model"] == "feedforward1"
    loaded = load_exported(file)
    assert not loaded.training
    assert str(loaded) == str(trial.network)
    for name, weights in loaded.state_dict().items():
        assert torch.equal(weights, state["network"][name])


def test_other_files_are_refused(tmp_path):
    (tmp_path / "mine.pt").write_bytes(b"what a trial of my own saved")
    torch.save({"network": {}}, tmp_path / "other.pt")
    for name in ("mine.pt", "other.pt", "none.pt"):
        with pytest.raises(InputError, match="no network that rota run --export wrote"):
            load_exported(tmp_path / name)

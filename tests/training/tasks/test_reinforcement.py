"""Learning to balance a pole."""

import io
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from rota.core.errors import ConfigError
from rota.training.models.registry import build
from rota.training.task import Batch
from rota.training.tasks.reinforcement import A2C, DISCOUNT, DQN, GAMES, REWARD, Played, advantages, drawn

CPU = torch.device("cpu")
KINDS = {"a2c": A2C, "dqn": DQN}


class Run:
    """A network in training, as a trainer would train it."""

    def __init__(self, name: str, *, seed: int = 0, lr: float = 3e-3, size: int = 64) -> None:
        self.task = KINDS[name](device=CPU, seed=seed)
        self.network = build(name, self.task.inputs, self.task.outputs, seed)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr)
        self.position, self.size = 0, size

    def train(self, steps: int) -> "Run":
        for _ in range(steps):
            batch = self.task.batch(self.network, self.position, self.size)
            self.optimizer.zero_grad()
            self.task.loss(self.network(batch.inputs), batch).backward()
            self.optimizer.step()
            self.position += self.size
        return self

    def saved(self) -> bytes:
        file = io.BytesIO()
        parts = {"network": self.network, "optimizer": self.optimizer, "task": self.task}
        torch.save({"position": self.position, **{name: p.state_dict() for name, p in parts.items()}}, file)
        return file.getvalue()

    def load(self, saved: bytes) -> "Run":
        state = torch.load(io.BytesIO(saved), weights_only=True)
        self.position = state["position"]
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.task.load_state_dict(state["task"])
        return self

    @property
    def weights(self) -> Tensor:
        return torch.cat([weight.detach().flatten() for weight in self.network.parameters()])


@pytest.mark.parametrize("name", KINDS)
class TestBoth:
    def test_a_stopped_and_resumed_run_equals_one_that_was_not_stopped(self, name):
        whole = Run(name).train(60)
        half = Run(name).train(25).saved()
        resumed = Run(name, seed=0).load(half).train(35)
        assert torch.equal(resumed.weights, whole.weights)
        assert resumed.task.evaluate(resumed.network) == whole.task.evaluate(whole.network)

    def test_saving_before_the_first_step_and_twice_changes_nothing(self, name):
        first = Run(name).load(Run(name).saved())
        again = Run(name).load(Run(name).load(first.train(3).saved()).saved()).train(3)
        assert torch.equal(again.weights, Run(name).train(6).weights)

    def test_what_was_saved_stays_what_it_was_while_training_goes_on(self, name):
        run = Run(name).train(3)
        state = run.task.state_dict()
        before = str(state)
        run.train(3)
        assert str(state) == before != str(run.task.state_dict())

    def test_the_seed_decides_the_run_and_the_global_generator_has_no_say(self, name):
        torch.manual_seed(1)
        one, state = Run(name).train(5), torch.get_rng_state()
        torch.manual_seed(2)
        assert torch.equal(Run(name).train(5).weights, one.weights)
        torch.manual_seed(1)
        assert torch.equal(torch.get_rng_state(), state)
        assert not torch.equal(
            Run(name, seed=1).task.batch(one.network, 0, 64).inputs, one.task.batch(one.network, 0, 64).inputs
        )

    def test_batches_and_evaluation_leave_no_gradients_and_the_mode_as_it_was(self, name):
        run = Run(name)
        run.network.train()
        batch = run.task.batch(run.network, 0, 16)
        run.task.evaluate(run.network, "test")
        assert run.network.training
        assert not any(part.requires_grad for part in (batch.inputs, *batch.targets))
        assert all(weight.grad is None for weight in run.network.parameters())
        assert batch.inputs.shape == (16, 4)
        assert all(len(part) == 16 for part in batch.targets)

    def test_evaluating_does_not_change_the_run(self, name):
        watched = Run(name).train(3)
        for split in ("train", "validation", "test"):
            assert watched.task.evaluate(watched.network, split)["return"] >= 1
        assert torch.equal(watched.train(3).weights, Run(name).train(6).weights)

    def test_a_network_that_answers_nan_gives_a_nan_loss_and_no_crash(self, name):
        run = Run(name)
        with torch.no_grad():
            for weight in run.network.parameters():
                weight.fill_(torch.nan)
        batch = run.task.batch(run.network, 0, 16)
        assert run.task.loss(run.network(batch.inputs), batch).isnan()
        assert run.task.evaluate(run.network)["return"] < 20

    def test_is_learned(self, name):
        run = Run(name, size=128 if name == "a2c" else 64)
        untrained = run.task.evaluate(run.network)["return"]
        run.train(150 if name == "a2c" else 500)
        assert untrained < 15
        assert run.task.evaluate(run.network)["return"] > 50


def test_an_action_is_drawn_as_often_as_its_logit_says():
    logits = torch.tensor([0.5, 0.25, 0.25]).log().expand(8, 3)
    chance = torch.tensor([0.0, 0.3, 0.49, 0.51, 0.74, 0.76, 0.99, 1 - 1e-16])
    assert drawn(logits, chance).tolist() == [0, 0, 0, 1, 1, 2, 2, 2]


def test_advantages_without_ends_sum_up_surprises():
    never = torch.zeros(2, 1, dtype=torch.bool)
    values, following = torch.tensor([[0.2], [0.3]]), torch.tensor([[0.3], [0.5]])
    last = REWARD + DISCOUNT * 0.5 - 0.3
    first = REWARD + DISCOUNT * 0.3 - 0.2
    found = advantages(values, following, never, never, trace=0.5)
    torch.testing.assert_close(found, torch.tensor([[first + DISCOUNT * 0.5 * last], [last]]))


def test_after_a_fall_nothing_comes_and_after_the_limit_what_was_expected():
    values, following = torch.full((2, 2), 0.4), torch.full((2, 2), 0.6)
    fell = torch.tensor([[True, False], [False, False]])
    over = torch.tensor([[True, True], [False, False]])
    found = advantages(values, following, fell, over, trace=1.0)
    surprise = REWARD + DISCOUNT * 0.6 - 0.4
    torch.testing.assert_close(found, torch.tensor([[REWARD - 0.4, surprise], [surprise, surprise]]))


def test_with_full_trace_the_return_is_the_discounted_sum_of_rewards():
    steps = 5
    values = torch.rand(steps, 1, generator=torch.Generator().manual_seed(0))
    following = torch.cat([values[1:], torch.zeros(1, 1)])
    fell = torch.tensor([[False]] * (steps - 1) + [[True]])
    returns = values + advantages(values, following, fell, fell, trace=1.0)
    assert returns[0].item() == pytest.approx(1 - DISCOUNT**steps, rel=1e-5)  # 0.01 × (1 + γ + … + γ⁴)


def test_the_loss_of_a2c_is_policy_value_and_entropy():
    task = A2C(device=CPU)
    played = Played(torch.tensor([0, 1]), torch.tensor([0.5, 0.1]), torch.tensor([0.4, -0.4]))
    found = task.loss((torch.zeros(2, 2), torch.zeros(2)), Batch(torch.zeros(2, 4), played))
    # Both actions have ln ½; the advantages cancel; values miss by 0.5 and 0.1; entropy ln 2.
    assert found.item() == pytest.approx(0.5 * (0.25 + 0.01) / 2 - 0.01 * 0.693147, rel=1e-5)


def test_a2c_makes_likelier_what_turned_out_better():
    task, logits = A2C(device=CPU), torch.zeros(2, 2, requires_grad=True)
    played = Played(torch.tensor([0, 1]), torch.zeros(2), torch.tensor([0.4, -0.4]))
    task.loss((logits, torch.zeros(2)), Batch(torch.zeros(2, 4), played)).backward()
    assert (logits.grad[:, 0] < 0).all()
    assert (logits.grad[:, 1] > 0).all()


def test_a2c_plays_on_where_the_last_batch_ended():
    task, network = A2C(device=CPU), build("a2c", (4,), 2)
    seen = [task.batch(network, position, GAMES) for position in range(0, 5 * GAMES, GAMES)]
    for one, other in pairwise(seen):
        # The position changes by the velocity times 0.02 s.
        torch.testing.assert_close(other.inputs[:, 0], one.inputs[:, 0] + 0.02 * one.inputs[:, 1])


def test_a2c_refuses_a_batch_that_its_games_cannot_share():
    with pytest.raises(
        ConfigError, match=r"batch_size is 20; A2C plays 8 games at once: give a multiple of 8"
    ):
        A2C(device=CPU).batch(build("a2c", (4,), 2), 0, 20)


class Constant(nn.Module):
    """Expects the same of every state: 0.2 of the first action and 0.5 of the second."""

    def __init__(self) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.tensor([0.2, 0.5]))

    def forward(self, seen: Tensor) -> Tensor:
        return self.values.expand(len(seen), 2)


class TestDqn:
    def test_an_action_is_worth_its_reward_and_what_comes_after_unless_the_pole_fell(self):
        actions, values = DQN(device=CPU).batch(Constant(), 0, 256).targets
        assert set(actions.tolist()) == {0, 1}
        assert sorted({round(value, 6) for value in values.tolist()}) == [0.01, 0.01 + 0.99 * 0.5]

    def test_the_action_is_chosen_by_the_network_and_its_value_told_by_the_one_of_before(self):
        task, network = DQN(device=CPU), Constant()
        task.batch(network, 0, 64)
        with torch.no_grad():
            network.values.copy_(torch.tensor([0.9, 0.0]))
        assert task.batch(network, 64, 64).targets[1].max().item() == pytest.approx(0.01 + 0.99 * 0.2)
        renewed = task.batch(network, DQN.held, 64)
        assert renewed.targets[1].max().item() == pytest.approx(0.01 + 0.99 * 0.9)

    def test_a_network_that_has_grown_is_copied_anew(self):
        task, network = DQN(device=CPU), build("dqn", (4,), 2)
        task.batch(network, 0, 64)
        network.insert(2, nn.Linear(64, 64))
        task.batch(network, 64, 64)
        assert task.state_dict()["target"]["weights"].keys() == network.state_dict().keys()

    def test_a_run_that_grew_just_before_it_was_saved_resumes_exactly(self):
        def grown(run: Run) -> Run:
            run.network.insert(2, build("dqn", (64,), 2)[0])
            run.optimizer = torch.optim.Adam(run.network.parameters(), 3e-3)
            return run

        whole = grown(Run("dqn").train(5))
        resumed = grown(Run("dqn")).load(whole.saved())
        assert torch.equal(whole.train(5).weights, resumed.train(5).weights)

    def test_the_loss_is_about_the_actions_that_were_taken(self):
        expected = torch.tensor([[1.0, 7.0], [7.0, 2.5]])
        batch = Batch(torch.zeros(2, 4), (torch.tensor([0, 1]), torch.tensor([0.5, 0.5])))
        # Huber: 0.5² / 2 and 2 − 1/2.
        assert DQN(device=CPU).loss(expected, batch).item() == pytest.approx((0.125 + 1.5) / 2)

    @pytest.mark.parametrize("size", [8, 64, 200])
    def test_as_much_is_played_whatever_the_batches_are(self, size):
        task, network = DQN(device=CPU), Constant()
        for position in range(0, 1600, size):
            task.batch(network, position, size)
        rounds = task.warm_up + 1600 // task.reuse - size // task.reuse
        assert len(task._replay) == GAMES * rounds

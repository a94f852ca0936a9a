"""A network that grows and shrinks with the room that it is told of."""

import pytest

from rota.core.errors import ConfigError
from rota.learning.agent import Agent
from rota.training.adaptive import AdaptiveJob, AdaptiveKind
from rota.training.clock import Length
from rota.training.hyper import Hyperparameters
from rota.training.recorder.gang import digest
from rota.training.setup import Setup

SETUP = Setup(model="convnet2", data="digits", threads=1, hyper=Hyperparameters(batch_size=16))


def adaptive(policy=None, **settings):
    kind = AdaptiveKind(budget_s=100.0, epoch=Length(steps=4), **settings)
    return AdaptiveJob(kind.course(SETUP, 0), policy, None)


def iterate(work, count, room, at_s=1.0):
    work.tell(room, at_s)
    for _ in range(count):
        for stage in (work.fetch, work.compute, work.exchange, work.update):
            stage()
    return work.notes()


def whats(notes):
    return [note["what"] for note in notes]


def test_it_changes_before_each_epoch_in_which_there_is_room():
    work = adaptive(changes=("deepen 1", "nothing", "deepen 0"))
    assert whats(iterate(work, 8, room=0)) == ["epoch", "epoch"]
    notes = iterate(work, 12, room=1, at_s=7.0)
    assert whats(notes) == ["up", "decided", "epoch", "decided", "epoch", "decided", "epoch"]
    decided = [note for note in notes if note["what"] == "decided"]
    assert [note["chosen"] for note in decided] == ["deepen 1", "nothing", "deepen 0"]
    assert [note["steps"] for note in decided] == [8, 12, 16]
    assert {note["left_s"] for note in decided} == {93.0}  # of 100, at 7


def test_when_the_room_is_taken_the_network_is_what_it_was():
    work = adaptive(changes=("deepen 1",))
    before = work._trainer.structure.fingerprint
    iterate(work, 6, room=1)
    assert work._trainer.structure.fingerprint != before
    notes = iterate(work, 1, room=0)
    assert whats(notes) == ["down"]
    assert work._trainer.structure.fingerprint == before


def test_taking_room_ends_the_epoch_so_that_the_next_is_whole():
    work = adaptive()
    iterate(work, 2, room=0)
    assert whats(iterate(work, 4, room=1)) == ["up", "epoch"]
    assert work._trainer.progress.steps == 6


def test_stopped_and_gone_on_with_it_is_what_it_would_have_been():
    whole, half, rest = (adaptive(changes=("deepen 1", "deepen 0")) for _ in range(3))
    iterate(whole, 6, room=1)
    iterate(whole, 7, room=1)
    iterate(half, 6, room=1)
    rest.load(half.save())
    iterate(rest, 7, room=1)
    assert digest(rest._trainer.network) == digest(whole._trainer.network)
    assert rest.metric == whole.metric


class Always:
    """Would do the first thing."""

    def probabilities(self, observation):
        rest = 0.4 / (len(observation.actions) - 1)
        return [0.6, *[rest] * (len(observation.actions) - 1)]


@pytest.mark.parametrize("policy", [Agent.new("structural", {}, seed=0), Always()], ids=["agent", "other"])
def test_an_agent_decides_with_probabilities(policy):
    work = adaptive(policy=policy, decisions=2)
    notes = iterate(work, 12, room=1)
    decided = [note for note in notes if note["what"] == "decided"]
    assert len(decided) == 2
    for note in decided:
        assert sum(note["probabilities"].values()) == pytest.approx(1.0, abs=1e-3)
        assert note["chosen"] == max(note["probabilities"], key=note["probabilities"].get)


def test_epochs_are_steps():
    with pytest.raises(ConfigError, match="epoch: give steps"):
        AdaptiveKind(epoch=Length(seconds=1.0))

"""Learning a stage: the same seed, the same agent; stopped or not."""

from dataclasses import replace

import pytest
import torch

from rota.core.errors import InputError
from rota.learning import learner
from rota.learning.config import Method
from rota.learning.files import HistoryRow, read_history
from rota.learning.learner import (
    ROWS,
    LearningStage,
    StageLearner,
    carry_through,
    learned,
    spent,
)

QUICK = Method(episodes_per_update=4)


@pytest.fixture
def stage(make_tree, tmp_path):
    """Ten updates of four episodes."""
    return LearningStage(QUICK, (make_tree(),), episodes=40, temperature=1.0, seed=0, folder=tmp_path)


def weights(stage):
    return learned(stage).network.state_dict()


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_the_same_seed_gives_the_same_agent_and_another_one_another(stage, tmp_path):
    elsewhere = replace(stage, folder=tmp_path / "elsewhere")
    different = replace(stage, seed=1)
    for each in (stage, elsewhere, different):
        carry_through(each)
    assert same(weights(stage), weights(elsewhere))
    assert not same(weights(stage), weights(different))


class Stopped(Exception):
    pass


@pytest.mark.parametrize("after", [1, 5, 9])
@pytest.mark.parametrize("network", ["structural", "original"])
def test_a_stage_that_is_stopped_and_goes_on_comes_to_the_same(stage, tmp_path, monkeypatch, after, network):
    monkeypatch.setattr(learner, "CHECKPOINT_EVERY_S", 0.0)
    stage = replace(stage, method=replace(QUICK, network=network))
    whole = replace(stage, folder=tmp_path / "whole")
    carry_through(whole)
    seen = 0

    def stop(episodes):
        nonlocal seen
        seen += episodes
        if seen == 4 * after:
            raise Stopped

    with pytest.raises(Stopped):
        carry_through(stage, stop)
    assert not stage.done
    drawn = []
    carry_through(stage, drawn.append)
    assert sum(drawn) == 40 - 4 * after  # the checkpoint is of just before
    assert same(weights(stage), weights(whole))
    assert read_history(stage.place, HistoryRow) == read_history(whole.place, HistoryRow)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and then nothing"])
def test_a_damaged_file_is_said_to_be_one(stage, content):
    stage.place.mkdir(parents=True)
    (stage.place / "checkpoint.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"checkpoint.npz: .*; delete it to begin anew"):
        carry_through(stage)
    (stage.place / "weights.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"weights.npz: cannot be read"):
        learned(stage)
    (stage.place / "done.json").write_bytes(content)
    with pytest.raises(InputError, match=r"done.json: .*; delete it to learn this stage again"):
        spent(stage)


def test_it_learns_what_there_is_to_learn(make_tree, tmp_path):
    tree = make_tree(lambda sequence: 0.9 if sequence == (1, 0, 3) else 0.2 + 0.1 * sequence.count(1))
    stage = LearningStage(Method(), (tree,), episodes=20_000, temperature=1.0, seed=0, folder=tmp_path)
    carry_through(stage)
    rows = read_history(stage.place, HistoryRow)
    assert rows[0].accuracy == pytest.approx(0.286, abs=0.06)  # the mean of all is (0.9 − 0.3)/64 + 0.275
    assert rows[-1].accuracy == pytest.approx(0.9)
    assert rows[-1].entropy < 0.05


def test_a_later_stage_starts_from_the_weights_of_the_one_before(stage):
    after = replace(stage, before=stage, temperature=5.0)
    carry_through(stage)
    assert same(StageLearner(after).agent.network.state_dict(), weights(stage))
    carry_through(after)
    assert not same(weights(after), weights(stage))
    seconds, episodes = spent(after)
    assert episodes == 80
    assert seconds > 0
    assert [row.temperature for row in read_history(after.place, HistoryRow)] == [5.0] * 10


def test_rows_are_as_many_as_a_reader_can_use(stage):
    long = replace(stage, episodes=4 * (ROWS + 1))
    carry_through(long)
    rows = read_history(long.place, HistoryRow)
    assert len(rows) == ROWS // 2 + 1  # two updates each, and the last one by itself
    assert rows[-1].episodes == 4 * (ROWS + 1)


def test_the_digest_tells_apart_what_comes_to_something_else(stage, make_tree):
    others = [
        replace(stage, episodes=44),
        replace(stage, seed=1),
        replace(stage, temperature=2.0),
        replace(stage, before=stage),
        replace(stage, start_sha256="abc"),
        replace(stage, method=Method()),
        replace(stage, trees=(make_tree(start_s=90.0),)),
        replace(stage, trees=(make_tree(lambda sequence: 0.5),)),
    ]
    assert len({each.digest for each in (stage, *others)}) == 9
    assert replace(stage, trees=(make_tree(scenario="else", seed=3),)).digest == stage.digest


def test_no_fewer_episodes_are_drawn_than_were_asked_for(stage):
    assert (replace(stage, episodes=41).updates, replace(stage, episodes=41).drawn) == (11, 44)
    assert replace(stage, episodes=1).updates == 1

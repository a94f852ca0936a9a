"""What was evaluated, and its file."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.errors import InputError
from rota.learning.files import EVALUATION as FILE
from rota.learning.outcome import (
    Baselines,
    Evaluation,
    EvaluationOutcome,
    EvaluationRow,
    read_evaluations,
    share,
    write_evaluations,
)

AGENT = EvaluationOutcome(
    scenario="early",
    model="ConvNet2",
    seed=1,
    sequence=(0, 1),
    changes=("deepen 0", "nothing"),
    actions=("deepen 0", "nothing"),
    accuracy=0.5,
    rank=2,
    of=4,
    headroom=0.25,
    probabilities=((0.75, 0.25), (0.5, 0.5)),
)
OTHERS = Baselines(never=0.25, random=0.375, fixed=0.5, fixed_sequence=(0, 0), oracle=0.625, mean=0.375)
SEEN = EvaluationRow(AGENT, OTHERS, True)
UNSEEN = EvaluationRow(
    replace(AGENT, headroom=-0.75), replace(OTHERS, fixed=None, fixed_sequence=None), False
)
EVALUATION = Evaluation("agents/seed0", {"stages": [{"trees": ["convnet2/early"]}]}, (SEEN, UNSEEN))


def test_what_was_written_comes_back(tmp_path):
    write_evaluations(tmp_path / "new", [EVALUATION, replace(EVALUATION, rows=())], "rota evaluate --agent x")
    found, command = read_evaluations(tmp_path / "new")
    assert found == [EVALUATION, replace(EVALUATION, rows=())]
    assert command == "rota evaluate --agent x"
    assert isinstance(found[0].rows[0].agent.probabilities[0], tuple)


def test_writing_again_replaces_what_is_there(tmp_path):
    write_evaluations(tmp_path, [EVALUATION], "one")
    write_evaluations(tmp_path, [], "two")
    assert read_evaluations(tmp_path) == ([], "two")
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_row_as_plain_values_says_what_users_are_promised():
    found = json.loads(json.dumps(SEEN.to_json()))
    assert {"scenario", "model", "sequence", "accuracy", "rank", "of", "headroom"} <= set(found)
    assert (found["sequence"], found["seen"], found["others"]["oracle"]) == ([0, 1], True, 0.625)


def test_a_row_that_does_not_say_its_data_can_be_read(tmp_path):
    write_evaluations(tmp_path, [EVALUATION], "one")
    file = tmp_path / FILE
    found = json.loads(file.read_text())
    del found["agents"][0]["scenarios"][0]["data"]
    file.write_text(json.dumps(found))
    assert read_evaluations(tmp_path) == ([EVALUATION], "one")


def test_a_share_by_hand():
    assert share(0.5, mean=0.25, best=0.75) == 0.5
    assert share(0.75, mean=0.25, best=0.75) == 1.0
    assert share(0.0, mean=0.25, best=0.75) == -0.5


def test_there_is_no_share_of_a_way_that_is_only_a_rounding_error():
    assert share(0.1, mean=0.1 - 1e-17, best=0.1) == 0.0
    assert share(0.3, mean=0.3, best=0.30000000000000004) == 0.0
    assert share(0.0, mean=0.0, best=0.0) == 0.0


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_best_has_a_share_of_one_and_the_mean_of_none(mean, more):
    best = mean + more
    assert share(mean, mean, best) == 0.0
    assert share(best, mean, best) in (0.0, 1.0)


DAMAGED = {
    "cut short": lambda text: text[: len(text) // 2],
    "no JSON": lambda text: "agents",
    "not UTF-8": lambda text: text.encode() + b"\xff",
    "a list": lambda text: "[]",
    "a number": lambda text: "3",
    "no command": lambda text: text.replace('"command"', '"order"'),
    "no agents": lambda text: text.replace('"agents"', '"others"'),
    "a value missing": lambda text: text.replace('"rank"', '"rang"'),
    "no others": lambda text: text.replace('"others"', '"rest"'),
    "others a list": lambda text: json.dumps(changed(text, others=[])),
    "others a text": lambda text: json.dumps(changed(text, others="none")),
    "others nothing": lambda text: json.dumps(changed(text, others=None)),
    "a row that is none": lambda text: json.dumps(
        {"command": "", "agents": [{"agent": "", "about": {}, "scenarios": ["early"]}]}
    ),
    "a number that is a text": lambda text: json.dumps(changed(text, accuracy="high")),
    "probabilities of another length": lambda text: json.dumps(changed(text, probabilities=[[1.0]])),
    "a seed that is none": lambda text: text.replace('"about": {', '"about": {"seed": "a",'),
    "an agent that is none": lambda text: json.dumps({"command": "", "agents": ["agent"]}),
}


def changed(text: str, **values: object) -> dict:
    """The file with other values in its first row."""
    found = json.loads(text)
    found["agents"][0]["scenarios"][0] |= values
    return found


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_an_error_that_says_what_to_do(tmp_path, damage):
    write_evaluations(tmp_path, [EVALUATION], "rota evaluate")
    path = tmp_path / FILE
    found = damage(path.read_text())
    path.write_bytes(found if isinstance(found, bytes) else found.encode())
    with pytest.raises(InputError, match=r"evaluation.json: .*; evaluate again: rota evaluate$"):
        read_evaluations(tmp_path)


def test_no_file_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"evaluation.json: cannot be read \(.*No such file"):
        read_evaluations(tmp_path)

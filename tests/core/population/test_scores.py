"""Node scores: what is in the files, what is wrong in them, and the slots that are made of them."""

import json
import socket
from pathlib import Path

import pytest

from rota.core.cluster import Slot
from rota.core.errors import InputError
from rota.core.population.scores import (
    Score,
    ScoredDevice,
    cluster_of,
    is_here,
    read_resources,
    read_scores,
    write_scores,
)

A, B, A_GPU = (
    ScoredDevice("10.0.0.1", "CPU"),
    ScoredDevice("node_b_1", "CPU"),
    ScoredDevice("10.0.0.1", "GPU"),
)


@pytest.fixture
def file(tmp_path):
    """Gives a function that writes a file and says where it is."""

    def write(content):
        path = tmp_path / "some.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_scores_are_read_cpus_first_and_in_the_order_of_the_file(file):
    found = read_scores(
        file(
            {
                "GPU": {"10.0.0.1": {"core": 1, "score": 67}},
                "CPU": {
                    "node_b_1": {"core": 4, "score": 0.25},
                    "10.0.0.1": {"core": 16, "score": 10, "spread": 0.5, "work": "resnet18"},
                },
            }
        )
    )
    assert list(found.items()) == [
        (B, Score(4, 0.25)),
        (A, Score(16, 10.0, 0.5, "resnet18")),
        (A_GPU, Score(1, 67.0)),
    ]


def test_a_bundle_of_none_is_no_bundle(file):
    assert read_resources(file({"CPU": {"10.0.0.1": 16, "node_b_1": 0}, "GPU": {"10.0.0.1": 1}})) == {
        A: 16,
        A_GPU: 1,
    }


def test_scores_are_written_as_other_tools_read_them(tmp_path):
    write_scores(tmp_path / "score.json", {A_GPU: Score(1, 9120.0), A: Score(16, 1410.5, 3.0, "convnet2")})
    assert (tmp_path / "score.json").read_text() == (
        "{\n"
        '    "CPU": {\n'
        '        "10.0.0.1": {\n'
        '            "core": 16,\n'
        '            "score": 1410.5,\n'
        '            "spread": 3.0,\n'
        '            "work": "convnet2"\n'
        "        }\n"
        "    },\n"
        '    "GPU": {\n'
        '        "10.0.0.1": {\n'
        '            "core": 1,\n'
        '            "score": 9120.0\n'
        "        }\n"
        "    }\n"
        "}\n"
    )


def test_what_is_written_is_read_again(tmp_path):
    scores = {B: Score(4, 0.0, 0.0), A: Score(16, 1410.5, 3.0, "convnet2"), A_GPU: Score(2, 1e-3)}
    write_scores(tmp_path / "score.json", scores)
    assert read_scores(tmp_path / "score.json") == scores
    assert [path.name for path in tmp_path.iterdir()] == ["score.json"]


def test_a_tilde_is_the_home_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    write_scores(Path("~/score.json"), {A: Score(1, 2.0)})
    assert (tmp_path / "score.json").exists()
    assert read_scores(Path("~/score.json")) == {A: Score(1, 2.0)}
    with pytest.raises(InputError, match="there is no such user; give the folder in full"):
        read_scores(Path("~no-such-user-at-all/score.json"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{CPU: ", "not JSON (Expecting property name enclosed in double quotes: line 1 column 2"),
        ("[]", "not a table per device"),
        ({"CPU": [16]}, "not a table per device"),
        ({"TPU": {}}, "unknown device 'TPU'. Did you mean 'GPU'? Known: CPU, GPU"),
        ({"CPU": {"a": -4}}, "a CPU: -4 is not a number of cores or GPUs; give 0 or more"),
        ({"GPU": {"a": 0.5}}, "a GPU: 0.5 is not a number of cores or GPUs"),
        ({"GPU": {"a": True}}, "a GPU: True is not a number of cores or GPUs"),
        ('{"CPU": {"a": 1, "a": 2}}', "'a' occurs twice"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_wrong_resources_are_told(file, content, message):
    path = file(content)
    with pytest.raises(InputError) as caught:
        read_resources(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("16", 'a CPU: 16 should be like {"core": 16, "score": 1410.0}'),
        ('{"core": 16}', 'should be like {"core": 16, "score": 1410.0}'),
        ('{"core": 0, "score": 1}', "a CPU: core: 0 is not a number of cores or GPUs; give 1 or more"),
        ('{"core": 1, "score": "fast"}', "a CPU: score: 'fast' is not a finite number"),
        ('{"core": 1, "score": NaN}', "a CPU: score: nan is not a finite number"),
        ('{"core": 1, "score": 1e999}', "a CPU: score: inf is not a finite number"),
        (f'{{"core": 1, "score": 1{"0" * 400}}}', "is not a finite number"),
        ('{"core": 1, "score": 1, "spread": "much"}', "a CPU: spread: 'much' is not a finite number"),
    ],
)
def test_wrong_scores_are_told(file, entry, message):
    with pytest.raises(InputError) as caught:
        read_scores(file(f'{{"CPU": {{"a": {entry}}}}}'))
    assert message in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(InputError, match=r"res.json: does not exist; it should look like .*CPU"):
        read_resources(tmp_path / "res.json")
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory\); give another file"):
        read_scores(tmp_path)


# ── slots ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_node_has_a_slot_per_bundle_that_fits_and_cpus_come_before_gpus():
    scores = {A: Score(8, 10.0), B: Score(4, 3.0), A_GPU: Score(1, 67.0)}
    cluster, notes = cluster_of(scores, cpus={"node_b_1": 7, "10.0.0.1": 20}, gpus={"10.0.0.1": 2})
    assert cluster.names == ("node_b_1", "10.0.0.1")
    assert cluster.all_slots == (
        Slot(0, 3.0),  # 7 cores are one bundle of 4
        Slot(1, 10.0),  # 20 cores are two bundles of 8, each as fast as the score says
        Slot(1, 10.0),
        Slot(1, 67.0, device="gpu"),
        Slot(1, 67.0, device="gpu"),
    )
    assert notes == ()


def test_without_totals_each_entry_is_one_slot():
    cluster, notes = cluster_of({A: Score(8, 10.0), B: Score(4, 3.0), A_GPU: Score(2, 67.0)})
    assert cluster.names == ("10.0.0.1", "node_b_1")
    assert cluster.all_slots == (Slot(0, 10.0), Slot(0, 67.0, device="gpu"), Slot(1, 3.0))
    assert notes == ()


def test_what_can_do_no_work_gets_no_slot_and_a_note_says_why():
    gone = ScoredDevice("10.0.0.9", "CPU")
    scores = {A: Score(8, 0.0), B: Score(4, 3.0), A_GPU: Score(2, 67.0), gone: Score(1, 1.0)}
    totals = {"10.0.0.1": 8, "node_b_1": 4, "new": 12}
    cluster, notes = cluster_of(scores, cpus=totals, gpus={"10.0.0.1": 1})
    assert cluster.names == ("node_b_1",)
    assert cluster.all_slots == (Slot(0, 3.0),)
    assert notes == (
        "10.0.0.9 CPU: scored, but not in the cluster; left out",
        "10.0.0.1 CPU: score 0 is not above 0; left out",
        "10.0.0.1 GPU: has 1, and a bundle takes 2; left out",
        "new CPU: has no score; left out",
    )


@pytest.mark.parametrize(
    ("scores", "why"),
    [({}, "there are none"), ({A: Score(1, -1.0)}, "10.0.0.1 CPU: score -1 is not above 0; left out")],
)
def test_no_slot_at_all_is_an_error_that_says_why(scores, why):
    with pytest.raises(InputError) as caught:
        cluster_of(scores)
    assert str(caught.value) == f"scores: they give no slots ({why})"


# ── this machine ────────────────────────────────────────────────────────────────────────────────────────────


def own_address():
    """The address that this machine would write from; without a network, that of the loop."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        try:
            line.connect(("198.51.100.1", 9))  # kept for documentation: nobody has it
        except OSError:
            return "127.0.0.1"
        return line.getsockname()[0]


@pytest.mark.parametrize(
    "name", ["127.0.0.1", "127.0.0.53", "::1", "localhost", socket.gethostname(), own_address()]
)
def test_this_machine_knows_its_names(name):
    assert is_here(name)


@pytest.mark.parametrize(
    "name", ["198.51.100.1", "2001:db8::1", "0.0.0.0", "no.such.machine.invalid", "a" * 70, ""]
)
def test_other_machines_are_not_this_one(name):
    assert not is_here(name)

"""`rota score`, as its user sees it."""

import json

import pytest

from rota import cli
from rota.core.population.scores import ScoredDevice, cluster_of, read_scores

QUICK = ("--model", "feedforward1", "--batch-size", "16")
WORK = "feedforward1, digits of 32 pixels, batches of 16"


@pytest.fixture
def score(here, capsys):
    """Gives a function that runs `rota score …` on one core, in the folder `here`; code, stdout and stderr.

    Notes that depend on what else this machine does are left out of stderr.
    """
    (here / "res.json").write_text('{"CPU": {"127.0.0.1": 1}, "GPU": {}}')

    def run(*words):
        code = cli.main(["score", *map(str, words)])
        out, err = capsys.readouterr()
        lines = [line for line in err.splitlines() if "waited" not in line and "apart" not in line]
        return code, out, lines

    return run


def test_a_second_of_training_gives_a_score_that_a_cluster_can_be_made_of(score, here):
    code, out, notes = score("--seconds", 1)
    assert (code, notes) == (0, [])
    line, file = out.splitlines()
    found = json.loads((here / file).read_text())
    entry = found["CPU"]["127.0.0.1"]
    assert found["GPU"] == {}
    assert list(entry) == ["core", "score", "spread", "work"]
    assert entry["core"] == 1
    assert entry["score"] > 1.0
    assert entry["score"] == float(f"{entry['score']:.4g}")
    assert entry["work"] == "convnet2, digits of 32 pixels, batches of 64"
    assert line.startswith(f"127.0.0.1 CPU  {entry['score']:g} images/s, spread ")
    cluster, _ = cluster_of(read_scores(here / file), cpus={"127.0.0.1": 3})
    assert [slot.speed for slot in cluster.all_slots] == [entry["score"]] * 3


def test_json_is_one_object_and_nothing_else(score, here):
    (here / "res.json").write_text('{"CPU": {"127.0.0.1": 1, "localhost": 1, "198.51.100.1": 8}}')
    code, out, notes = score(*QUICK, "--seconds", 0.2, "--json", "--out", "deep/down.json")
    found = json.loads(out)
    assert code == 0
    assert (found["out"], found["unit"], found["work"]) == ("deep/down.json", "images/s", WORK)
    first, second = found["measured"]
    assert (first["ip"], second["ip"]) == ("127.0.0.1", "localhost")
    assert first["runs"] == second["runs"]  # equal bundles of one machine are measured once
    assert len(first["runs"]) == 5
    assert first["score"] == pytest.approx(sorted(first["runs"])[2], rel=1e-3)
    assert found["kept"] == []
    assert found["missing"] == [{"ip": "198.51.100.1", "device": "CPU", "core": 8}]
    assert notes == [
        "note: 198.51.100.1 CPU: another machine, without a score; run rota score there and add its entry"
    ]
    scores = read_scores(here / "deep" / "down.json")
    assert list(scores) == [ScoredDevice("127.0.0.1", "CPU"), ScoredDevice("localhost", "CPU")]


def test_scores_of_other_machines_are_kept_and_what_is_doubtful_about_them_is_said(score, here):
    (here / "res.json").write_text('{"CPU": {"198.51.100.1": 8, "127.0.0.1": 1}}')
    old = {
        "CPU": {
            "127.0.0.1": {"core": 1, "score": 0.001, "work": WORK},
            "198.51.100.1": {"core": 4, "score": 7, "work": WORK},
        },
        "GPU": {"198.51.100.2": {"core": 1, "score": 67}},
    }
    (here / "score.json").write_text(json.dumps(old))
    code, out, notes = score(*QUICK, "--seconds", 0.2, "--json")
    assert code == 0
    assert [entry["score"] for entry in json.loads(out)["kept"]] == [7.0, 67.0]
    assert notes == [
        "note: 198.51.100.1 CPU: asked for 8 per bundle, but its score is for 4",
        "note: 198.51.100.2 GPU: its score is kept; it is of something unknown, not of "
        f"{WORK}: they cannot be compared",
    ]
    found = json.loads((here / "score.json").read_text())
    assert list(found["CPU"]) == ["198.51.100.1", "127.0.0.1"]
    assert found["CPU"]["198.51.100.1"] == old["CPU"]["198.51.100.1"]
    assert found["CPU"]["127.0.0.1"]["score"] > 1.0
    assert found["GPU"] == old["GPU"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--res", "nowhere.json"], "nowhere.json: does not exist; it should look like"),
        (
            ["--res", "bad.json"],
            "bad.json: not JSON (Expecting value: line 1 column 17 (char 16)); it should",
        ),
        (["--res", "negative.json"], "127.0.0.1 CPU: -1 is not a number of cores or GPUs; give 0 or more"),
        (["--res", "many.json"], "a bundle of 9999 CPU: this machine has"),
        (
            ["--res", "others.json"],
            "none of the machines is this one (198.51.100.1), and it can only measure",
        ),
        (["--out", "bad.json"], "bad.json: not JSON"),
        (["--out", "."], "cannot be read (Is a directory)"),
        (["--model", "resnet81"], "unknown model 'resnet81'. Did you mean 'resnet8'?"),
        (["--model", "dqn"], "takes no images; give one of convnet"),
        (["--data", "digit"], "unknown data set 'digit'"),
        (["--batch-size", "0"], "batch_size is 0; it must be at least 1"),
        (["--seconds", "-1"], "seconds is -1; it must be above 0"),
    ],
)
def test_a_mistake_is_told_in_one_line_with_exit_code_2(score, here, words, message):
    (here / "bad.json").write_text('{"CPU": {"cpu": }}')
    (here / "negative.json").write_text('{"CPU": {"127.0.0.1": -1}}')
    (here / "many.json").write_text('{"CPU": {"127.0.0.1": 9999}}')
    (here / "others.json").write_text('{"CPU": {"198.51.100.1": 1}}')
    code, out, lines = score(*words)
    assert (code, out, len(lines)) == (2, "", 1)
    assert lines[0].startswith("rota: error: ")
    assert message in lines[0]
    assert not (here / "score.json").exists()


def test_every_node_of_a_ray_cluster_is_measured_by_itself(score, here, ray):
    words = ("--address", ray.address, "--seconds", "0.2", "--json")
    code, out, _ = score(*QUICK, *words)
    assert code == 0
    scores = read_scores(here / "score.json")
    assert {place: (found.core, found.work) for place, found in scores.items()} == {
        ScoredDevice("fast", "CPU"): (2, WORK),
        ScoredDevice("head", "CPU"): (1, WORK),
        ScoredDevice("slow", "CPU"): (1, WORK),
    }
    assert all(found.score > 0 for found in scores.values())
    assert [entry["ip"] for entry in json.loads(out)["measured"]] == ["fast", "head", "slow"]
    assert len(cluster_of(scores).cluster.all_slots) == 3

    code, _, complaint = score(*QUICK, *words, "--res", here / "res.json")
    assert (code, len(complaint)) == (2, 1)
    assert "none of the machines is a node" in complaint[0]
    assert "it has fast, head, slow" in complaint[0]

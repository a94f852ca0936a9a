"""Profiles: the stages of real iterations, alone and in gangs; stopped, resumed, failed."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from rota.config.bind import bind
from rota.config.load import read
from rota.core.errors import ConfigError, InputError
from rota.recordings.profile import read_profiles
from rota.training.device import threads
from rota.training.hyper import optimizer
from rota.training.models.registry import MODELS, build
from rota.training.recorder import profiles
from rota.training.recorder.gang import GangLost, Iterations, ProcessGang, digest, member_device
from rota.training.recorder.partial import RecordingProgress
from rota.training.recorder.profile_config import ProfileCell, ProfilesConfig
from rota.training.recorder.profiles import ProfilesRecorder, row

SHIPPED = Path(__file__).parents[3] / "config" / "record" / "profiles.toml"
CPU = torch.device("cpu")
TINY = {"size": None, "device": "cpu", "iterations": 4, "warm": 1}


def config(**values):
    return ProfilesConfig(**{**TINY, "models": ("feedforward1",), "batch_sizes": (8, 16), **values})


def record(out, settings, progress=None):
    return list(
        ProfilesRecorder(out, settings, "rota record x.toml").record(
            progress or RecordingProgress(quiet=True)
        )
    )


class Stopping(RecordingProgress):
    """Ctrl-C when so many cells have been measured."""

    def __init__(self, cells):
        super().__init__(quiet=True)
        self.cells = cells

    def advance(self, seconds):
        self.cells -= 1
        if not self.cells:
            raise KeyboardInterrupt


# ── what is asked ───────────────────────────────────────────────────────────────────────────────────────────


def test_all_models_at_four_batch_sizes_alone_and_in_pairs_unless_told_otherwise():
    cells = ProfilesConfig().cells()
    assert len(cells) == len(set(cells)) == len(MODELS) * 4 * 2
    assert [cell.gang for cell in cells] == sorted(cell.gang for cell in cells)


def test_what_is_shipped_has_every_model_at_four_batch_sizes():
    [table] = read(SHIPPED)["profiles"]
    asked = bind(ProfilesConfig, table, SHIPPED)
    for name in MODELS:
        for gang in (1, 2):
            assert len([cell for cell in asked.cells() if (cell.model, cell.gang) == (name, gang)]) == 4


def test_a_model_may_have_batch_sizes_of_its_own():
    asked = config(models=("dqn", "a2c"), gangs=(2,), batch_sizes_of={"a2c": (64,)})
    assert asked.cells() == [ProfileCell("dqn", 8, 2), ProfileCell("dqn", 16, 2), ProfileCell("a2c", 64, 2)]


def test_a_member_takes_its_share_and_only_models_of_images_take_images():
    asked = config(models=("convnet2", "transformer"), data="digits", size=16, augment=True)
    images, text = (asked.setup(ProfileCell(name, 16, 2)) for name in asked.models)
    assert (images.hyper.batch_size, images.data, images.size, images.augment) == (8, "digits", 16, True)
    assert (text.hyper.batch_size, text.data, text.size, text.augment) == (8, None, None, False)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"name": "a/b"}, "letters, digits"),
        ({"models": ["convnet22"]}, "Did you mean 'convnet2'"),
        ({"models": ["all", "dqn"]}, "'all' or names, not both"),
        ({"models": []}, "models: give one or more"),
        ({"batch_sizes": [8, 8]}, "batch_sizes: give one or more numbers from 1 on, each of them once"),
        ({"batch_sizes": [9]}, "batch_sizes: 9 cannot be shared equally by a gang of 2"),
        ({"batch_sizes_of": {"dqn": [3]}}, "dqn: 3 cannot be shared"),
        ({"batch_sizes_of": {"dqm": [8]}}, "batch_sizes_of: unknown model 'dqm'. Did you mean 'dqn'"),
        ({"gangs": [0]}, "gangs: give one or more numbers from 1 on"),
        ({"iterations": 0}, "iterations is 0; it must be at least 1"),
        ({"warm": -1}, "warm is -1; it must be at least 0"),
        ({"threads": 0}, "threads is 0"),
        ({"limit_s": 0.0}, "limit_s is 0; it must be above 0"),
        ({"limit_s": float("inf")}, "limit_s is inf; it must be above 0 and finite"),
        ({"seed": -1}, "seed -1: give a whole number, 0 or more"),
        ({"optimizer": "sdg"}, "Did you mean 'sgd'"),
    ],
)
def test_what_cannot_be_asked(table, message):
    with pytest.raises(ConfigError, match=r"profiles\.toml: ") as error:
        bind(ProfilesConfig, table, "profiles.toml")
    assert message in str(error.value)


# ── stages ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_alone_there_is_nothing_to_synchronise():
    work = Iterations(config().setup(ProfileCell("feedforward1", 16, 1)), CPU)
    before = digest(work.network)
    found = work.measure(iterations=5, warm=2, limit_s=60.0)
    assert len(found) == 5
    assert all(each.load_s > 0 and each.compute_s > 0 and each.synchronise_s == 0.0 for each in found)
    assert all(each.iteration_s == pytest.approx(each.load_s + each.compute_s) for each in found)
    assert digest(work.network) != before  # it has really learned


def test_a_cell_that_takes_too_long_is_measured_three_times():
    work = Iterations(config().setup(ProfileCell("feedforward1", 8, 1)), CPU)
    assert len(work.measure(iterations=50, warm=0, limit_s=1e-9)) == 3
    assert len(work.measure(iterations=2, warm=0, limit_s=1e-9)) == 2


def test_more_work_takes_longer():
    def compute_s(name, size):
        work = Iterations(config().setup(ProfileCell(name, size, 1)), CPU)
        return min(each.compute_s for each in work.measure(iterations=20, warm=1, limit_s=60.0))

    with threads(1):
        assert compute_s("convnet-large", 64) > compute_s("convnet-large", 8)
        assert compute_s("convnet-large", 8) > compute_s("feedforward1", 8)


def test_a_row_has_the_medians_and_the_spread():
    stages = [[1.0, 10.0, 0.0], [2.0, 30.0, 0.0], [3.0, 20.0, 0.0], [4.0, 50.0, 0.0], [5.0, 40.0, 0.0]]
    found = row(ProfileCell("dqn", 8, 2), "cpu", stages)
    assert found.stages_s == (3.0, 30.0, 0.0)
    assert found.iteration_s == 32.0  # of 11, 32, 23, 54, 45
    assert found.spread_s == 45.0 - 23.0
    assert (found.model, found.batch_size, found.gang, found.iterations) == ("dqn", 8, 2, 5)


def test_threads_are_as_before_in_the_end():
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


# ── recordings ──────────────────────────────────────────────────────────────────────────────────────────────


def test_stopped_and_started_again_measures_only_what_is_missing(tmp_path):
    asked = config(gangs=(1,), models=("feedforward1", "feedforward2"))
    with pytest.raises(KeyboardInterrupt):
        record(tmp_path, asked, Stopping(3))
    kept = ProfilesRecorder(tmp_path, asked, "").partial
    known = {cell: kept.get(cell.name) for cell in asked.cells()}
    assert [found is None for found in known.values()] == [False, False, False, True]
    assert record(tmp_path, asked) == [tmp_path / "profiles" / "profiles"]
    found = read_profiles(tmp_path / "profiles" / "profiles")
    for cell in asked.cells()[:3]:
        expected = row(cell, found.devices[0], known[cell]["stages"])
        assert repr(found.find(cell.model, cell.batch_size, expected.device)) == repr(expected)
    assert len(found.rows) == 4
    assert found.details["failed"] == {}
    assert found.provenance.command == "rota record x.toml"
    assert not kept.folder.exists()
    assert record(tmp_path, asked) == []  # all of it is there


def test_other_settings_do_not_mix_with_what_is_there(tmp_path):
    asked = config(gangs=(1,), batch_sizes=(8,))
    with pytest.raises(KeyboardInterrupt):
        record(tmp_path, asked, Stopping(1))
    with pytest.raises(InputError, match="unfinished with other settings"):
        record(tmp_path, config(gangs=(1,), batch_sizes=(16,)))
    record(tmp_path, asked)
    with pytest.raises(InputError, match="was recorded with other settings"):
        record(tmp_path, config(gangs=(1,), batch_sizes=(16,)))


def test_data_that_are_not_there_are_missed_before_anything_is_begun(tmp_path):
    with pytest.raises(ConfigError, match="unknown data set 'digit'"):
        record(tmp_path, config(data="digit"))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_cell_that_fails_is_told_and_the_others_are_measured(tmp_path, monkeypatch):
    def full(self):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nMore for programmers.")

    asked = config(gangs=(1,), models=("a2c", "feedforward1"), batch_sizes=(8, 12))
    record(tmp_path, asked)
    found = read_profiles(tmp_path / "profiles" / "profiles")
    assert [(each.model, each.batch_size) for each in found.rows] == [
        ("a2c", 8), ("feedforward1", 8), ("feedforward1", 12),
    ]  # fmt: skip
    assert list(found.details["failed"]) == ["a2c-12-gang1"]
    assert "give a multiple of 8" in found.details["failed"]["a2c-12-gang1"]
    monkeypatch.setattr(Iterations, "compute", full)
    with pytest.raises(
        InputError, match=r"nothing could be measured \(CUDA out of memory. Tried to allocate 2 GiB.\)"
    ):
        record(tmp_path, config(name="none", gangs=(1,)))


def test_a_piece_that_cannot_be_read_is_named(tmp_path):
    asked = config(gangs=(1,), batch_sizes=(8,))
    with pytest.raises(KeyboardInterrupt):
        record(tmp_path, asked, Stopping(1))
    (tmp_path / "partial" / "profiles-profiles" / "feedforward1-8-gang1.json").write_text("{", "utf-8")
    with pytest.raises(InputError, match=r"feedforward1-8-gang1.json: cannot be read .* delete it"):
        record(tmp_path, asked)


# ── gangs ───────────────────────────────────────────────────────────────────────────────────────────────────

TOGETHER = config(models=("a2c", "transformer"), gangs=(2,), batch_sizes=(24,), iterations=3, warm=1)
"""A2C cannot share 24 examples: the gang that failed is followed by another."""
SHARED = ProfileCell("transformer", 24, 2)


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    gangs = []

    class Kept(ProcessGang):
        def __enter__(self):
            gangs.append(self)
            return super().__enter__()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profiles, "ProcessGang", Kept)
        [folder] = record(tmp_path_factory.mktemp("together"), TOGETHER)
    return SimpleNamespace(profiles=read_profiles(folder), gangs=gangs)


def test_a_gang_synchronises(together):
    [found] = together.profiles.rows
    assert (found.model, found.batch_size, found.gang, found.iterations) == ("transformer", 24, 2, 3)
    assert min(found.stages_s) > 0
    assert max(found.stages_s) < found.iteration_s


def test_a_gang_in_which_a_cell_failed_is_followed_by_another(together):
    assert "give a multiple of 8" in together.profiles.details["failed"]["a2c-24-gang2"]
    assert [gang.weights != "" for gang in together.gangs] == [False, True]
    assert not any(process.is_alive() for gang in together.gangs for process in gang.processes)


def test_the_members_of_a_gang_learn_from_the_mean_of_their_gradients(together):
    setup = TOGETHER.setup(SHARED)
    tasks = [setup.task(seed) for seed in (0, 1)]
    networks = [build("transformer", task.inputs, task.outputs).train() for task in tasks]
    optimizers = [optimizer("sgd", network.parameters(), setup.hyper) for network in networks]
    with threads(1):
        for position in range(0, 4 * 12, 12):
            gradients = []
            for task, network in zip(tasks, networks, strict=True):
                batch = task.batch(network, position, 12)
                loss = task.loss(network(batch.inputs), batch)
                gradients.append(torch.autograd.grad(loss, list(network.parameters())))
            for network, chosen in zip(networks, optimizers, strict=True):
                for weight, one, other in zip(network.parameters(), *gradients, strict=True):
                    weight.grad = (one + other) / 2
                chosen.step()
    assert [digest(network) for network in networks] == [together.gangs[1].weights] * 2


def test_a_member_that_dies_is_missed_at_once():
    with ProcessGang(2, TOGETHER) as gang:
        gang.processes[1].kill()
        with pytest.raises(GangLost, match="a member of the gang of 2 died"):
            gang.measure(SHARED)
    assert not any(process.is_alive() for process in gang.processes)


def test_a_gang_that_keeps_silent_is_given_up():
    with (
        ProcessGang(2, TOGETHER, patience_s=0.01) as gang,
        pytest.raises(GangLost, match=r"has not answered within 0\.01 s"),
    ):
        gang.measure(SHARED)
    assert not any(process.is_alive() for process in gang.processes)


def test_members_share_the_cpu_but_not_gpus(monkeypatch):
    assert member_device("cpu", 1, 2) == CPU
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [str(member_device("cuda", rank, 2)) for rank in (0, 1)] == ["cuda:0", "cuda:1"]
    for name, members in (("cuda", 3), ("cuda:1", 2)):
        with pytest.raises(InputError, match=f"a gang of {members} .* needs as many GPUs; there are 2"):
            member_device(name, 0, members)


def test_what_is_kept_of_a_cell_is_plain(tmp_path):
    asked = config(gangs=(1,), batch_sizes=(8,))
    with pytest.raises(KeyboardInterrupt):
        record(tmp_path, asked, Stopping(1))
    file = tmp_path / "partial" / "profiles-profiles" / "feedforward1-8-gang1.json"
    stages = json.loads(file.read_text("utf-8"))["stages"]
    assert len(stages) == TINY["iterations"]
    assert all(load_s > 0 and compute_s > 0 and exchange_s == 0 for load_s, compute_s, exchange_s in stages)

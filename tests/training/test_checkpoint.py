"""A checkpoint is whole and of this network, or it is refused."""

import io
import shutil
import sysconfig
from pathlib import Path

import pytest
import torch
from torch import nn

from rota.core.errors import InputError
from rota.core.network import Change
from rota.training.checkpoint import from_bytes, load, save, to_bytes
from rota.training.clock import Length, ProfiledClock, StoppedClock
from rota.training.hyper import Hyperparameters
from rota.training.setup import Setup
from rota.training.tasks import shared_task
from rota.training.tasks.supervised import TEXTS
from rota.training.trainer import Trainer


def trainer(model: str = "convnet2") -> Trainer:
    return Setup(model=model, data="digits", threads=1).trainer(
        StoppedClock(), seed=0, length=Length(steps=2)
    )


@pytest.fixture
def file(tmp_path):
    one = trainer()
    one.epoch(evaluate=False)
    save(tmp_path / "checkpoint.pt", one)
    return tmp_path / "checkpoint.pt"


def test_the_checkpoint_of_another_network_is_refused_and_that_network_is_untouched(file):
    other = trainer("convnet3")
    before = {name: tensor.clone() for name, tensor in other.network.state_dict().items()}
    with pytest.raises(InputError, match=r"checkpoint\.pt: is the checkpoint of another network"):
        load(file, other)
    assert all(torch.equal(before[name], tensor) for name, tensor in other.network.state_dict().items())


@pytest.mark.parametrize("cut", [0, 10, 60, 2000, -1])
def test_a_file_that_was_cut_off_is_refused(file, cut):
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(InputError, match=r"checkpoint\.pt: is (damaged|not a checkpoint)"):
        load(file, trainer())


def test_a_file_with_a_flipped_bit_is_refused(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(InputError, match="its checksum does not match"):
        load(file, trainer())


def test_a_missing_file_is_an_error_that_names_it(tmp_path):
    with pytest.raises(InputError, match=r"none\.pt: cannot be read \(No such file"):
        load(tmp_path / "none.pt", trainer())


def test_a_failed_save_leaves_the_checkpoint_before_it(file, monkeypatch):
    before = file.read_bytes()
    one = trainer()
    load(file, one)
    monkeypatch.setattr(
        torch, "save", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(OSError, match="No space left"):
        save(file, one)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_a_checkpoint_goes_only_into_a_trainer_that_has_not_begun(file):
    one = trainer()
    one.epoch(evaluate=False)
    with pytest.raises(ValueError, match="has not begun"):
        load(file, one)


@pytest.mark.parametrize("model", ["resnet18", "transformer", "dqn"])
def test_other_kinds_of_networks_resume_exactly_too(tmp_path, model):
    def begin() -> Trainer:
        data = {"data": "digits", "size": 8} if model == "resnet18" else {}
        setup = Setup(model=model, threads=1, **data)
        one = setup.trainer(StoppedClock(), seed=0, length=Length(steps=100))
        one.set(batch_size=4, lr=1e-3)
        return one

    unstopped, first, second = begin(), begin(), begin()
    unstopped.epoch(until_steps=4)
    first.epoch(until_steps=2)
    save(tmp_path / "c.pt", first)
    load(tmp_path / "c.pt", second)
    second.epoch(until_steps=4)
    pairs = zip(unstopped.network.parameters(), second.network.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.fixture
def another_python(tmp_path, monkeypatch):
    """From now on, the library of Python is that of another version."""

    def change() -> None:
        library, other = Path(sysconfig.get_path("stdlib")), tmp_path / "other"
        other.mkdir()
        for name in " ".join(TEXTS.values()).split():
            shutil.copy(library / f"{name}.py", other)
        (other / "os.py").write_text("# anew\n" + (other / "os.py").read_text("utf-8"), "utf-8")
        monkeypatch.setattr(sysconfig, "get_path", lambda _: str(other))
        shared_task.cache_clear()

    yield change
    shared_task.cache_clear()


def test_a_checkpoint_that_was_trained_on_other_texts_is_refused(tmp_path, another_python):
    setup = Setup(model="transformer", threads=1, hyper=Hyperparameters(batch_size=4))
    one = setup.trainer(StoppedClock(), seed=0, length=Length(steps=100))
    one.epoch(until_steps=1)
    save(tmp_path / "c.pt", one)
    another_python()
    other = setup.trainer(StoppedClock(), seed=0, length=Length(steps=100))
    with pytest.raises(InputError, match=r"c\.pt: was trained on other data than there are here; .* Python"):
        load(tmp_path / "c.pt", other)
    assert other.progress.steps == 0


def test_a_checkpoint_from_before_that_was_kept_is_read(tmp_path, another_python):
    setup = Setup(model="transformer", threads=1, hyper=Hyperparameters(batch_size=4))
    one = setup.trainer(StoppedClock(), seed=0, length=Length(steps=100))
    one.epoch(until_steps=1)
    state = torch.load(io.BytesIO(to_bytes(one)), weights_only=True)
    del state["data"]
    older = io.BytesIO()
    torch.save(state, older)
    another_python()
    other = setup.trainer(StoppedClock(), seed=0, length=Length(steps=100))
    from_bytes(older.getvalue(), other, tmp_path)
    assert other.progress.steps == 1


def test_dropout_and_changed_hyper_parameters_resume_exactly(tmp_path):
    def begin() -> Trainer:
        one = trainer("feedforward1")
        network = nn.Sequential(one.network, nn.Dropout(0.5))
        return Trainer(network, one.task, StoppedClock(), length=Length(steps=2))

    unstopped = begin()
    unstopped.set(lr=0.002, momentum=0.5, batch_size=16)
    unstopped.epoch(evaluate=False)
    save(tmp_path / "c.pt", unstopped)
    unstopped.epoch(evaluate=False)

    resumed = begin()
    torch.manual_seed(99)
    load(tmp_path / "c.pt", resumed)
    assert resumed.hyper == unstopped.hyper
    resumed.epoch(evaluate=False)
    pairs = zip(unstopped.network.parameters(), resumed.network.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_a_network_that_grew_at_another_batch_size_resumes_on_a_profiled_clock(tmp_path):
    small = trainer()
    grown = trainer()
    grown.change(Change.parse("deepen 0"))
    seconds = {
        (small.structure.fingerprint, 64): 0.1,
        (grown.structure.fingerprint, 64): 0.2,
        (grown.structure.fingerprint, 16): 0.3,
    }
    setup = Setup(model="convnet2", data="digits", threads=1)
    first, second = (setup.trainer(ProfiledClock(seconds), seed=0, length=Length(steps=2)) for _ in range(2))
    first.epoch(evaluate=False)
    first.change(Change.parse("deepen 0"))
    first.set(batch_size=16)
    first.epoch(evaluate=False)
    save(tmp_path / "c.pt", first)
    load(tmp_path / "c.pt", second)
    assert second.clock.now_s() == first.clock.now_s() == pytest.approx(2 * 0.1 + 2 * 0.3)
    assert second.epoch(evaluate=False).at_s == pytest.approx(0.8 + 2 * 0.3)


def test_the_checkpoint_of_another_optimiser_is_refused(file):
    other = Setup(model="convnet2", data="digits", threads=1, optimizer="sgd").trainer(StoppedClock(), seed=0)
    with pytest.raises(InputError, match="was trained with Adam, this is SGD"):
        load(file, other)

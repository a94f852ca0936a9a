"""Learning to write Python."""

import ast
import sysconfig

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from rota.core.errors import ConfigError, InputError
from rota.training.models.registry import build
from rota.training.tasks import supervised
from rota.training.tasks.supervised import TEXTS, VOCABULARY, Language

CPU = torch.device("cpu")
UNUSED = nn.Identity()
TASK = Language(device=CPU, context=32)


class Repeats(nn.Module):
    """Expects each byte to come again."""

    def forward(self, text: Tensor) -> Tensor:
        return nn.functional.one_hot(text, VOCABULARY).float()


def texts(task: Language, position: int, size: int) -> list[bytes]:
    return [bytes(row.tolist()) for row in task.batch(UNUSED, position, size).inputs]


def test_the_text_is_real_python_and_of_a_useful_size():
    sizes = {}
    for split, names in TEXTS.items():
        sources = [supervised._source(name) for name in names.split()]
        assert all(ast.parse(source).body for source in sources)
        sizes[split] = sum(map(len, sources))
    assert 1_000_000 < sum(sizes.values()) < 2_500_000
    assert sizes["train"] > 4 * max(sizes["validation"], sizes["test"]) > 4 * 50_000


def test_every_file_is_in_one_split_only():
    names = [name for split in TEXTS.values() for name in split.split()]
    assert len(set(names)) == len(names)
    assert names == sorted(names)


def test_one_pass_holds_the_whole_text_in_another_order():
    text = b"".join(supervised._source(name) for name in TEXTS["train"].split())
    rows = texts(TASK, 0, TASK.examples)
    whole = TASK.examples * 32
    assert sorted(rows) == sorted(text[at : at + 32] for at in range(0, whole, 32))
    assert len(text) - whole <= 32
    assert rows != sorted(rows)


def test_the_target_of_a_byte_is_the_byte_after_it():
    batch = TASK.batch(UNUSED, 100, 8)
    assert batch.inputs.shape == batch.targets.shape == (8, 32)
    assert batch.inputs.dtype == batch.targets.dtype == torch.int64
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])


@given(position=st.integers(0, 3 * TASK.examples), sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_the_stream_depends_on_the_position_only(position, sizes):
    together = texts(TASK, position, sum(sizes))
    apart = []
    for size in sizes:
        apart += texts(TASK, position + len(apart), size)
    assert apart == together


def test_passes_and_seeds_have_their_own_order():
    other = Language(device=CPU, context=32, seed=1)
    assert texts(TASK, 0, 20) != texts(TASK, TASK.examples, 20)
    assert texts(TASK, 0, 20) != texts(other, 0, 20)
    assert texts(TASK, 0, 20) == texts(Language(device=CPU, context=32), 0, 20)


def test_the_loss_of_knowing_nothing_is_that_of_a_uniform_guess():
    batch = TASK.batch(UNUSED, 0, 4)
    nothing = torch.zeros(4, 32, VOCABULARY)
    assert TASK.loss(nothing, batch).item() == pytest.approx(8 * 0.6931472, rel=1e-6)


def test_accuracy_and_loss_are_means_over_bytes():
    whole = Language(device=CPU, context=16)
    texts = whole._texts["test"]
    evenly = texts[torch.linspace(0, len(texts) - 1, supervised.EVALUATED_TEXTS).long()].long()
    again = (evenly[:, 1:] == evenly[:, :-1]).double().mean().item()
    found = whole.evaluate(Repeats(), "test")
    assert found["accuracy"] == pytest.approx(again, rel=1e-12)
    # One logit is 1 and 255 are 0: log(e + 255) less the logit of what came.
    assert found["loss"] == pytest.approx(torch.tensor(255 + torch.e).log().item() - again, rel=1e-5)
    assert 0.05 < again < 0.5


def test_an_answer_that_is_not_a_number_is_wrong():
    class Broken(nn.Module):
        def forward(self, text: Tensor) -> Tensor:
            return torch.full((*text.shape, VOCABULARY), torch.nan)

    assert TASK.evaluate(Broken())["accuracy"] == 0


def test_evaluation_leaves_the_mode_of_every_part_as_it_was():
    network = build("transformer", (32,), VOCABULARY)
    network.layers.eval()
    modes = [module.training for module in network.modules()]
    assert TASK.evaluate(network) == TASK.evaluate(network)
    assert [module.training for module in network.modules()] == modes
    assert all(weight.grad is None for weight in network.parameters())


def test_a_transformer_learns():
    network = build("transformer", TASK.inputs, TASK.outputs)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    before = TASK.evaluate(network)
    for step in range(40):
        batch = TASK.batch(network, 16 * step, 16)
        optimizer.zero_grad()
        TASK.loss(network(batch.inputs), batch).backward()
        optimizer.step()
    after = TASK.evaluate(network)
    assert before["loss"] == pytest.approx(5.545, abs=0.1)
    assert after["loss"] < 3.5
    assert after["accuracy"] > 0.15 > before["accuracy"]


def test_there_is_no_state():
    assert TASK.state_dict() == {}
    TASK.load_state_dict({})


def test_the_texts_have_a_digest_whatever_the_seed(monkeypatch):
    assert Language(device=CPU, seed=3).digest == TASK.digest != ""
    source = supervised._source
    monkeypatch.setattr(supervised, "_source", lambda name: source(name).replace(b"queue", b"cue"))
    assert Language(device=CPU).digest != TASK.digest


@pytest.mark.parametrize(
    ("context", "message"), [(0, "context is 0; it must be at least 1"), (10**6, "give a smaller one")]
)
def test_a_context_that_cannot_be_is_refused(context, message):
    with pytest.raises(ConfigError, match=message):
        Language(device=CPU, context=context)


def test_an_unknown_split_is_refused():
    with pytest.raises(ConfigError, match=r"unknown split 'valid'\. Did you mean 'validation'"):
        TASK.evaluate(UNUSED, "valid")


def test_a_python_without_its_sources_is_said_to_be_one(tmp_path, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(InputError, match=r"argparse\.py: cannot be read .* source of Python's own library"):
        Language(device=CPU)

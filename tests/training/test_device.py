"""Where training runs, by name."""

import pytest
import torch

from rota.core.errors import ConfigError
from rota.training.device import device


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpu", "'gpu': is not one; give auto, cpu, cuda or cuda:1"),
        ("mps", "'mps': rota trains on the CPU and on CUDA"),
        (f"cuda:{torch.cuda.device_count()}", "PyTorch sees "),
    ],
)
def test_what_is_not_there_is_refused(name, said):
    with pytest.raises(ConfigError, match=said):
        device(name)


def test_a_gpu_beyond_the_last_one_is_refused(monkeypatch):
    """Only what CUDA says of the machine is made up."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert device("cuda:1") == torch.device("cuda:1")
    assert device("cuda") == torch.device("cuda")
    with pytest.raises(ConfigError, match="device 'cuda:7': PyTorch sees 2 GPUs here: give cuda:0 to cuda:1"):
        device("cuda:7")

"""Small networks train faster on one thread than on several that wait for each other."""

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _same_each_time():
    """Whatever a test draws without a seed of its own."""
    torch.manual_seed(0)

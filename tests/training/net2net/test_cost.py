"""Growing costs little: in time, and in memory."""

import copy
import time
from collections.abc import Callable

import pytest
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rota.training.models.registry import build
from rota.training.net2net import deepen, widen

WAYS: dict[str, Callable[[nn.Module], None]] = {
    "deepen the first layer": lambda network: deepen(network, "conv1"),
    "deepen inside a block": lambda network: deepen(network, "layer4.1.conv1"),
    "deepen behind a block": lambda network: deepen(network, "layer4.1"),
    "widen inside a block": lambda network: widen(network, "layer4.1.conv1", 768),
}


class Allocations(TorchDispatchMode):
    """Counts the bytes of all tensors that are made, also of those that are soon gone."""

    bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = {_place(each) for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)}
        result = func(*args, **(kwargs or {}))
        made = [
            each for each in tree_leaves(result) if isinstance(each, Tensor) and _place(each) not in given
        ]
        self.bytes += sum(each.untyped_storage().nbytes() for each in made if each.device.type != "meta")
        return result


def _place(values: Tensor) -> int:
    return values.untyped_storage().data_ptr()


def size(network: nn.Module) -> int:
    return sum(each.numel() * each.element_size() for each in network.state_dict().values())


@pytest.fixture(scope="module")
def resnet() -> nn.Module:
    return build("resnet18", (3, 32, 32), 10)


@pytest.mark.parametrize("way", WAYS)
def test_a_resnet_grows_in_an_instant(resnet, way):
    seconds = []
    for _ in range(3):  # the least is what growing takes
        network = copy.deepcopy(resnet)
        start = time.thread_time()  # whatever else the machine does meanwhile
        WAYS[way](network)
        seconds.append(time.thread_time() - start)
    assert min(seconds) < 0.2  # 0.01 to 0.02 s as a rule


@pytest.mark.parametrize("way", WAYS)
def test_no_more_memory_than_the_larger_network_beside_the_smaller(resnet, way):
    network = copy.deepcopy(resnet)
    with Allocations() as allocations:
        WAYS[way](network)
    assert size(network) - size(resnet) <= allocations.bytes <= size(network)

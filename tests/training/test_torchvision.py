"""torchvision can be imported whichever build of PyTorch there is."""

import subprocess
import sys


def test_torchvision_is_usable_after_the_import_and_for_later_importers():
    code = """
import gc, torch
from rota.training.torchvision import torchvision
gc.collect()
import torchvision.transforms.v2 as again
assert torch.ops.torchvision.nms.default
assert torchvision.models.shufflenet_v2_x0_5(num_classes=3)(torch.zeros(2, 3, 32, 32)).shape == (2, 3)
assert torchvision.datasets.CIFAR10 and again.RandomCrop
print("fine")
"""
    assert subprocess.check_output([sys.executable, "-W", "error", "-c", code], text=True) == "fine\n"

"""torchvision's networks for small images: the first layers keep the resolution."""

from collections import OrderedDict
from typing import Any

from torch import nn

from rota.training.models.networks import images
from rota.training.torchvision import torchvision


def resnet18(inputs: tuple[int, ...], outputs: int) -> nn.Module:
    """Return a ResNet-18 for images of shape (channels, height, width)."""
    return _resnet(torchvision.models.resnet18(num_classes=outputs), images(inputs))


def resnet50(inputs: tuple[int, ...], outputs: int) -> nn.Module:
    """Return a ResNet-50 for images of shape (channels, height, width)."""
    return _resnet(torchvision.models.resnet50(num_classes=outputs), images(inputs))


def vgg16(inputs: tuple[int, ...], outputs: int) -> nn.Module:
    """Return a VGG-16 for images of shape (channels, height, width) of at least 32 by 32."""
    return _vgg("D", images(inputs, least=32), outputs)


def vgg19(inputs: tuple[int, ...], outputs: int) -> nn.Module:
    """Return a VGG-19 for images of shape (channels, height, width) of at least 32 by 32."""
    return _vgg("E", images(inputs, least=32), outputs)


def shufflenet(inputs: tuple[int, ...], outputs: int) -> nn.Module:
    """Return a ShuffleNet V2 for images of shape (channels, height, width)."""
    network: Any = torchvision.models.shufflenet_v2_x1_0(num_classes=outputs)
    network.conv1[0] = nn.Conv2d(images(inputs), 24, 3, padding=1, bias=False)
    network.maxpool = nn.Identity()
    return _initialised(network)


def _resnet(network: Any, channels: int) -> nn.Module:
    network.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
    network.maxpool = nn.Identity()
    return _initialised(network)


def _vgg(configuration: str, channels: int, outputs: int) -> nn.Module:
    """Return a VGG network's convolutions with a small head (its own has 120 million weights)."""
    vgg = torchvision.models.vgg
    features = vgg.make_layers(vgg.cfgs[configuration], batch_norm=True)
    features[0] = nn.Conv2d(channels, 64, 3, padding=1)
    squeeze, flatten, head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, outputs)
    parts = OrderedDict(features=features, squeeze=squeeze, flatten=flatten, head=head)
    return _initialised(nn.Sequential(parts))


def _initialised(network: nn.Module) -> nn.Module:
    """Initialise convolutions so that gradients keep their variance through ReLUs (He)."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return network

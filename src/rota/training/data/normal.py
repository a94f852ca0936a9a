"""Pixels as a network likes them: mean 0 and standard deviation 1 in every channel."""

import torch
from torch import Tensor

CHUNK = 512
"""So many images are counted at once; few enough to stay in the processor's cache."""


class Normal:
    """Takes bytes to numbers that have mean 0 and standard deviation 1 over the images it was made from."""

    def __init__(self, images: Tensor, where: torch.device) -> None:
        mean, deviation = statistics(images)
        contrast = torch.where(deviation > 0, deviation, 1.0)  # a channel of one shade becomes 0
        self._mean = mean.float().view(1, -1, 1, 1).to(where)
        self._scale = contrast.reciprocal().float().view(1, -1, 1, 1).to(where)
        self._where = where

    def __call__(self, pixels: Tensor) -> Tensor:
        """These images, normalised, on the device; they go there as bytes, a quarter of what numbers take."""
        return pixels.to(self._where).float().sub_(self._mean).mul_(self._scale)


def statistics(images: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of every channel, from how often each byte occurs in it."""
    channels = images.shape[1]
    counts = torch.zeros(channels, 256, dtype=torch.int64)
    for start in range(0, len(images), CHUNK):
        for channel in range(channels):
            pixels = images[start : start + CHUNK, channel].flatten()
            counts[channel] += torch.bincount(pixels, minlength=256)
    shares = counts.double() / counts.sum(1, keepdim=True)
    shades = torch.arange(256, dtype=torch.float64)
    mean = shares @ shades
    variance = (shares * (shades - mean[:, None]) ** 2).sum(1)
    return mean, variance.sqrt()

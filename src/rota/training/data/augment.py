"""Crops: images moved a little, and some of them seen in a mirror."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rota.core.arrays import Array
from rota.training.data.stream import Taken


class Crops:
    """Images with a black margin around them, of which crops of the original size are taken."""

    def __init__(self, images: Array, *, margin: int, mirror: bool) -> None:
        height, width = images.shape[2:]
        around = ((0, 0), (0, 0), (margin, margin), (margin, margin))
        self._windows = sliding_window_view(np.pad(images, around), (height, width), axis=(2, 3))
        self._mirror = mirror

    def take(self, taken: Taken) -> Array:
        """The crops that the stream says, in its order."""
        down, right = taken.shifts
        crops: Array = self._windows[taken.order, :, down, right]
        if self._mirror:
            crops[taken.mirrored] = crops[taken.mirrored, :, :, ::-1]
        return crops

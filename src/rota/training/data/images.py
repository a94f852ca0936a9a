"""Labelled images, and the three splits of a data set."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Images:
    """Images and what is on them, in the same order."""

    images: Tensor
    """Bytes: images × channels × height × width."""
    labels: Tensor
    """The class of each image, as an index."""

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Tensor) -> "Images":
        """The images at these indices, in that order."""
        return Images(self.images.index_select(0, indices), self.labels.index_select(0, indices))


@dataclass(frozen=True, eq=False)
class Splits:
    """A data set. No image of one split is an image of another."""

    name: str
    classes: tuple[str, ...]
    train: Images
    validation: Images
    """Taken from the training images; the test images are what the data set's authors chose."""
    test: Images
    mirrored: bool = True
    """Whether an image seen in a mirror still shows the same thing."""

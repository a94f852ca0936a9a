"""Image data sets, read once, with a validation split that is never the test split."""

from rota.training.data.images import Images, Splits
from rota.training.data.load import NAMES, is_here, load

__all__ = ["NAMES", "Images", "Splits", "is_here", "load"]

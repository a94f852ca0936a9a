"""The handwritten digits inside scikit-learn: 1,797 images of 8×8, there without any download."""

from importlib import import_module

import numpy as np

from rota.training.data.decoded import Decoded
from rota.training.data.split import stratified

TEST = 360
TEST_SEED = 0
"""The test split is the same for everyone, whatever the seed of a run."""


def read_digits() -> Decoded:
    """All digits; a fifth of them, the same of every class, are the test split."""
    found = import_module("sklearn.datasets").load_digits()  # a second to import, which others need not
    images = np.round(found.images * (255 / 16)).astype(np.uint8)[:, None]
    labels = found.target.astype(np.int64)
    rest, test = stratified(labels, TEST, TEST_SEED)
    return Decoded(images[rest], labels[rest], images[test], labels[test])

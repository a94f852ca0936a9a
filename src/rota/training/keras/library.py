"""Keras on TensorFlow, imported when it is needed."""

import os
from importlib import import_module
from typing import Any

from rota.core.errors import InputError


def keras() -> Any:
    """The Keras library. It is imported quietly, unless the environment says how TensorFlow is to behave."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Otherwise TensorFlow announces on stderr that its sums may be off, whatever the log level.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    try:
        return import_module("keras")
    except ModuleNotFoundError as error:
        missing = f"TensorFlow is not installed (no module {error.name!r})"
        raise InputError(f'{missing}; install it with: pip install "rota[tensorflow]"') from None

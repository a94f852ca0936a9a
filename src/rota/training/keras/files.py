"""Keras models in files of Keras' own format."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rota.core.atomic import written
from rota.core.errors import InputError
from rota.training.keras.library import keras

SUFFIX = ".keras"


def save(model: Any, file: Path) -> None:
    """Write a Keras model with its weights; TensorFlow alone can read it."""
    _check_name(file)
    with TemporaryDirectory() as folder:
        whole = Path(folder) / f"model{SUFFIX}"
        model.save(whole)
        with whole.open("rb") as source, written(file) as stream:
            shutil.copyfileobj(source, stream)


def load(file: Path) -> Any:
    """The Keras model in a file. What would run code from the file is refused."""
    _check_name(file)
    library = keras()
    if not file.is_file():
        raise InputError(f"{file}: there is no such file")
    try:
        return library.saving.load_model(file, safe_mode=True)
    except Exception as error:  # Keras lets through whatever the archive, the JSON or the weights raise
        raise InputError(f"{file}: is not a Keras model that can be read ({error})") from error


def _check_name(file: Path) -> None:
    if file.suffix != SUFFIX:
        raise InputError(f"{file}: the name of a Keras model ends with {SUFFIX}")

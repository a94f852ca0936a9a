"""What a network can take as its input."""

from rota.core.errors import ConfigError


def images(inputs: tuple[int, ...], least: int = 1) -> int:
    """The channels of images that are at least `least` pixels high and wide."""
    if len(inputs) != 3 or min(inputs) < 1:
        raise ConfigError(f"takes images of shape (channels, height, width), not inputs of shape {inputs}")
    channels, height, width = inputs
    if min(height, width) < least:
        small = f"takes images of {least}×{least} or more, not {height}×{width}"
        raise ConfigError(f"{small}; give a larger size or another model")
    return channels


def vector(inputs: tuple[int, ...], what: str) -> int:
    """The length of inputs that have one dimension; `what` says what they hold."""
    if len(inputs) != 1 or inputs[0] < 1:
        raise ConfigError(f"takes {what}, not inputs of shape {inputs}")
    return inputs[0]

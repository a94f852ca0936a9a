"""One colour per scheduler, allocation and model everywhere; colour-blind readers can tell them apart."""

import colorsys
import zlib
from collections.abc import Sequence

SCHEDULERS = {
    "fifo": "#626262",
    "srtf": "#0072b2",
    "srsf": "#56c9f0",
    "tiresias": "#00a66e",
    "themis": "#c7c110",
    "antman": "#cc79a7",
    "muri-s": "#e7aa5c",
    "muri-l": "#d55500",
    "muri-l-worst-order": "#6b2500",
    "muri-l-no-blossom": "#331d88",
}
"""In the order in which figures list them."""

ALLOCATIONS = {
    "fifo": "#626262",
    "era": "#56c9f0",
    "eta": "#0072b2",
    "hrfs": "#00a66e",
    "finish": "#e7aa5c",
    "learned": "#d55500",
    "spa-era": "#c7c110",
    "spa-eta": "#6b2500",
    "gpa-era": "#cc79a7",
    "gpa-eta": "#331d88",
}
"""Of trials on slots; in the order in which figures list them."""

MODELS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#44bb99", "#bbcc33", "#99ddff", "#aaaa00")
"""Pale, so that dark text can be read on them."""
OTHER_MODELS = "#bbbbbb"
IDLE = "#e9e9e9"
INK = "#222222"
FAINT = "#767676"
REAL, SIMULATED = "#222222", "#d55500"
"""What happened, and what a simulation said would happen."""

DASHES = ("solid", (0, (4, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)), (0, (2, 2, 6, 2)))
"""Tell runs of the same scheduler apart."""
HATCHES = ("", "////", "....", "xxxx", "----")


def scheduler_colour(name: str) -> str:
    """The colour of a scheduler; one that is not listed gets the same one each time, from its name."""
    return SCHEDULERS.get(name) or _from_name(name)


def allocation_colour(name: str) -> str:
    """The colour of an allocation; one that is not listed gets the same one each time, from its name."""
    return ALLOCATIONS.get(name) or _from_name(name)


def _from_name(name: str) -> str:
    hue = zlib.crc32(name.encode()) / 2**32
    red, green, blue = (round(255 * part) for part in colorsys.hls_to_rgb(hue, 0.42, 0.55))
    return f"#{red:02x}{green:02x}{blue:02x}"


def model_colours(models: Sequence[str]) -> dict[str, str]:
    """A colour for each model; those beyond the palette share one."""
    return {model: MODELS[i] if i < len(MODELS) else OTHER_MODELS for i, model in enumerate(models)}

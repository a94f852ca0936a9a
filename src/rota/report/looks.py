"""What policies look like on the page, and what they do, in a sentence."""

import colorsys
from collections.abc import Iterable, Sequence

from rota.figures.colours import allocation_colour, model_colours, scheduler_colour

Colour = list[str]
"""On a light page, and on a dark one."""

ON_DARK = {
    "#626262": "#a3a3a3", "#0072b2": "#4ba3dd", "#56c9f0": "#93def8", "#00a66e": "#2fc792",
    "#c7c110": "#d8d338", "#cc79a7": "#e39cc4", "#e7aa5c": "#f2c385", "#d55500": "#f27a2c",
    "#6b2500": "#b3683f", "#331d88": "#9180e8",
}  # fmt: skip
"""Of colours that are too dark on a dark page."""
SHADES = 24
TRIALS = 8
"""So many colours tell trials apart."""
WORST, BEST = (0.91, 0.93, 0.96), (0.03, 0.32, 0.55)
WORST_ON_DARK, BEST_ON_DARK = (0.20, 0.23, 0.28), (0.45, 0.80, 1.0)
AGENTS = ("#0072b2", "#d55500", "#00a66e", "#cc79a7", "#626262")
"""By seed."""

RULES = {
    "fifo": "whoever came first starts first and keeps what it has",
    "srtf": "the job with the least time left goes first",
    "srsf": "the job with the least GPU time left goes first",
    "tiresias": "who has had little GPU time so far goes first; durations need not be known",
    "themis": "who has been treated least fairly so far goes first",
    "antman": "guaranteed jobs have GPUs of their own, the others squeeze in beside them",
    "muri-s": "jobs that need different resources share GPUs; those with least left to do first",
    "muri-l": "jobs that need different resources share GPUs; those that have had least first",
    "muri-l-worst-order": "as muri-l, with the stages of a group in the worst order",
    "muri-l-no-blossom": "as muri-l, with groups that are put together without matching",
}
ALLOCATION_RULES = {
    "fifo": "the next trial goes to whichever slot has been idle for longest, an interval at a time",
    "era": "long lists while there is much to do, shorter ones towards the end",
    "eta": "lists as long as the slowest slot needs for one trial",
    "hrfs": "fast slots pull those along who are behind, slow ones do little for those ahead",
    "finish": "the list with which, by estimate, all would be done soonest",
    "learned": "the list that an agent has learned to be best, in rehearsals",
}


def scheduler(name: str) -> Colour:
    return both(scheduler_colour(name))


def allocation(name: str) -> Colour:
    return both(allocation_colour(name))


def agent(number: int) -> Colour:
    return both(AGENTS[number % len(AGENTS)])


def both(colour: str) -> Colour:
    """A colour, and what stands for it on a dark page."""
    return [colour, ON_DARK.get(colour) or _lighter(colour)]


def models(names: Sequence[str]) -> list[Colour]:
    """Of each; they are pale, and a little less so on a dark page."""
    return [[colour, _darker(colour)] for colour in model_colours(names).values()]


def trials() -> list[Colour]:
    """For trials of which nobody knows how good they are."""
    return models([str(number) for number in range(TRIALS)])


def shades() -> list[Colour]:
    """From the worst to the best, first one for what was not measured."""
    steps = [at / (SHADES - 2) for at in range(SHADES - 1)]
    pairs = [[_mixed(WORST, BEST, at), _mixed(WORST_ON_DARK, BEST_ON_DARK, at)] for at in steps]
    return [["#9fb4c7", "#5b7288"], *pairs]


def _mixed(one: Sequence[float], other: Sequence[float], share: float) -> str:
    return _hex(a + (b - a) * share for a, b in zip(one, other, strict=True))


def _lighter(colour: str) -> str:
    hue, light, saturation = _hls(colour)
    return _hex(colorsys.hls_to_rgb(hue, 0.45 + 0.5 * light, saturation))


def _darker(colour: str) -> str:
    hue, light, saturation = _hls(colour)
    return _hex(colorsys.hls_to_rgb(hue, 0.8 * light, 0.75 * saturation))


def _hls(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return colorsys.rgb_to_hls(red, green, blue)


def _hex(parts: Iterable[float]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)

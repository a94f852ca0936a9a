"""Networks as policies see them: structure, changes, and the protocol of growth policies."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

from rota.core.errors import ConfigError, InputError, unknown
from rota.core.registry import ClassContract


@dataclass(frozen=True, slots=True)
class Layer:
    """One operation of a network."""

    kind: str
    """Operation, such as `conv2d`, `linear`, `batchnorm`, `relu`, `add`."""
    sizes: tuple[tuple[str, int], ...] = ()
    """Named sizes, such as `(("in", 3), ("out", 32), ("kernel", 3))`."""

    def size(self, name: str, default: int = 0) -> int:
        """Return the size of that name, or the default if the layer has none."""
        return dict(self.sizes).get(name, default)

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} {value}" for name, value in self.sizes)
        return f"{self.kind}({sizes})" if sizes else self.kind


@dataclass(frozen=True)
class Structure:
    """The layers of a network in the order in which they run, and the data flow between them."""

    layers: tuple[Layer, ...]
    edges: tuple[tuple[int, int], ...]
    """Pairs of positions in `layers`: the output of the first goes into the second."""

    def __post_init__(self) -> None:
        wrong = [edge for edge in self.edges if not 0 <= edge[0] < edge[1] < len(self.layers)]
        if wrong:
            raise InputError(f"structure: edge {wrong[0]}: not from a layer to a later one")

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that are equal for equal structures."""
        text = json.dumps(self.as_json(), separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def as_json(self) -> dict[str, Any]:
        """Return plain values that are equal for equal structures."""
        layers = [[layer.kind, [list(size) for size in layer.sizes]] for layer in self.layers]
        return {"layers": layers, "edges": [list(edge) for edge in self.edges]}

    @classmethod
    def from_json(cls, values: Any) -> "Structure":
        """Return the structure that `as_json` returned as plain values."""
        try:
            layers = tuple(_layer(kind, sizes) for kind, sizes in values["layers"])
            return cls(layers, tuple((_whole(tail), _whole(head)) for tail, head in values["edges"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"structure: not written by rota ({error!r}); record it again") from None


def _layer(kind: Any, sizes: Any) -> Layer:
    if not isinstance(kind, str):
        raise TypeError(f"{kind!r} is not a kind of layer")
    return Layer(kind, tuple((str(name), _whole(value)) for name, value in sizes))


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a whole number")
    return value


Kind = Literal["deepen", "widen", "shrink", "nothing"]
KINDS = get_args(Kind)
FORMS = "'deepen BLOCK', 'widen BLOCK WIDTH', 'shrink' or 'nothing'"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a network.

    Blocks are counted in the order in which data passes them, in the initial network.
    """

    kind: Kind
    block: int = -1
    width: int = -1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(unknown("change", self.kind, KINDS))
        block_fits = self.block >= 0 if self.grows else self.block == -1
        width_fits = self.width > 0 if self.kind == "widen" else self.width == -1
        if not (block_fits and width_fits):
            raise ConfigError(f"{self!s}: not a change; write {FORMS}")

    def __str__(self) -> str:
        numbers = [str(number) for number in (self.block, self.width) if number >= 0]
        return " ".join([self.kind, *numbers])

    @property
    def grows(self) -> bool:
        """Whether the network gets larger."""
        return self.kind in ("deepen", "widen")

    @classmethod
    def parse(cls, text: str) -> "Change":
        """Return the change that a text like `deepen 0`, `widen 1 64`, `shrink` or `nothing` names."""
        kind, *numbers = text.split() or [""]
        if kind not in KINDS:
            raise ConfigError(unknown("change", kind, KINDS))
        if len(numbers) > 2 or not all(number.isascii() and number.isdigit() for number in numbers):
            raise ConfigError(f"{text!r}: not a change; write {FORMS}")
        return cls(kind, *map(int, numbers))  # type: ignore[arg-type]  # checked above


NOTHING = Change("nothing")
SHRINK = Change("shrink")


BUDGET_S = 60.0
"""Default budget of an opportunistic job, in seconds."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A training run at a decision, as a growth policy sees it."""

    structure: Structure
    """The current network."""
    blocks: tuple[tuple[int, ...], ...]
    """Layers of each block, as positions in the structure."""
    left_s: float
    """Seconds left of the budget."""
    budget_s: float
    """Seconds from the start of training to the end of the budget."""
    actions: tuple[Change, ...]
    """Changes to choose from."""
    made: tuple[int, ...] = ()
    """Earlier decisions of this run, undone ones included, as positions in `actions`."""

    @property
    def left(self) -> float:
        """The time left as a share of the budget."""
        return self.left_s / self.budget_s


class GrowthPolicy(Protocol):
    """A policy that decides how a network changes; it only reads the observation."""

    def probabilities(self, observation: Observation) -> Sequence[float]:
        """Return the probability of each action; they add up to 1.

        When a run acts, it takes the likeliest; while an agent learns, it samples one.
        """


def likeliest(probabilities: Sequence[float]) -> int:
    """Return the position of the largest; the first of equals."""
    return max(range(len(probabilities)), key=probabilities.__getitem__)


class Growth(ABC):
    """Base class of growth policies, which decide how a network changes while it trains.

    A subclass implements `choose(observation)`. If it is a dataclass, its fields are its options. Its name is
    the attribute `name` of the class, or else the class name in kebab-case: `WhileEarly` is `while-early`.

    >>> from dataclasses import dataclass
    >>> import rota
    >>> @dataclass(frozen=True)
    ... class WhileEarly(rota.Growth):
    ...     least: float = 0.5
    ...
    ...     def choose(self, observation):
    ...         return "deepen 0" if observation.left > self.least else "nothing"
    >>> from rota.core.network import NOTHING, Change, Observation, Structure
    >>> early = Observation(Structure((), ()), (), 8.0, 10.0, (Change("deepen", 0), NOTHING))
    >>> WhileEarly().choose(early), WhileEarly(least=0.9).choose(early)
    ('deepen 0', 'nothing')
    """

    @abstractmethod
    def choose(self, observation: Observation) -> Change | str:
        """Return one of `observation.actions`, or its text, such as `deepen 1`.

        `observation.left` is the time left as a share of the budget; `observation.left_s` and
        `observation.budget_s` are in seconds. `observation.structure` is the network, `observation.blocks`
        has the layers of each block that can grow, `observation.made` the earlier decisions, as positions in
        the actions. Equal observations must give equal choices. A change that the network does not allow is
        not made.
        """

    def probabilities(self, observation: Observation) -> list[float]:
        """Return 1 for the choice, and 0 for all others."""
        chosen = self.choose(observation)
        change = Change.parse(chosen) if isinstance(chosen, str) else chosen
        if change not in observation.actions:
            may = ", ".join(map(str, observation.actions))
            raise InputError(
                f"{type(self).__name__}: chose {change}, which is not offered; choose one of {may}"
            )
        return [float(action == change) for action in observation.actions]


SEAM = ClassContract("growth policy", "rota.Growth", {"choose": ("observation",)}, ("probabilities",))
"""Requirements on a growth policy class."""

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
    """One step of a network."""

    kind: str
    """Such as `conv2d`, `linear`, `batchnorm`, `relu`, `add`."""
    sizes: tuple[tuple[str, int], ...] = ()
    """Such as `(("in", 3), ("out", 32), ("kernel", 3))`."""

    def size(self, name: str, default: int = 0) -> int:
        """The size of that name, or the default if the layer has none."""
        return dict(self.sizes).get(name, default)

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} {value}" for name, value in self.sizes)
        return f"{self.kind}({sizes})" if sizes else self.kind


@dataclass(frozen=True)
class Structure:
    """The layers of a network in the order they run, and which feeds which."""

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
        """As plain values, the same for equal structures."""
        layers = [[layer.kind, [list(size) for size in layer.sizes]] for layer in self.layers]
        return {"layers": layers, "edges": [list(edge) for edge in self.edges]}

    @classmethod
    def from_json(cls, values: Any) -> "Structure":
        """What `as_json` gave, back as a structure."""
        try:
            layers = tuple(_layer(kind, sizes) for kind, sizes in values["layers"])
            return cls(layers, tuple((_whole(tail), _whole(head)) for tail, head in values["edges"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"structure: not one that rota wrote ({error!r}); make it anew") from None


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
    """One change.

    Blocks are counted in the order in which data passes them, in the network as it was at first.
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
        return self.kind in ("deepen", "widen")

    @classmethod
    def parse(cls, text: str) -> "Change":
        """`deepen 0`, `widen 1 64`, `shrink`, `nothing`."""
        kind, *numbers = text.split() or [""]
        if kind not in KINDS:
            raise ConfigError(unknown("change", kind, KINDS))
        if len(numbers) > 2 or not all(number.isascii() and number.isdigit() for number in numbers):
            raise ConfigError(f"{text!r}: not a change; write {FORMS}")
        return cls(kind, *map(int, numbers))  # type: ignore[arg-type]  # checked above


NOTHING = Change("nothing")
SHRINK = Change("shrink")


BUDGET_S = 60.0
"""Of a resident that says nothing about it."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A training run at a decision, as an adaptation policy sees it."""

    structure: Structure
    """The network as it is now."""
    blocks: tuple[tuple[int, ...], ...]
    """The layers that each block consists of, as positions in the structure."""
    left_s: float
    """Until the budget is over."""
    budget_s: float
    """All the time there is, from the start of training."""
    actions: tuple[Change, ...]
    """What may be done."""
    made: tuple[int, ...] = ()
    """What was decided before in this run, also where it has been taken back, as positions in `actions`."""

    @property
    def left(self) -> float:
        """The time left, as a share of the budget."""
        return self.left_s / self.budget_s


class GrowthPolicy(Protocol):
    """How should this network change now? Reads the sight, changes nothing."""

    def probabilities(self, sight: Observation) -> Sequence[float]:
        """How likely each of the sight's actions is to be the right one; they add up to 1.

        Whoever has to act takes the likeliest; whoever learns draws one.
        """


def likeliest(probabilities: Sequence[float]) -> int:
    """The position of the largest; the first of equals."""
    return max(range(len(probabilities)), key=probabilities.__getitem__)


class Growth(ABC):
    """A growth policy: says how a network changes while it trains.

    A subclass writes `choose(observation)`. Fields of a dataclass are its options. It is called by its
    `name`, a text in the class, or else by the name of its class: `WhileEarly` is `while-early`.

    >>> from dataclasses import dataclass
    >>> import rota
    >>> @dataclass(frozen=True)
    ... class WhileEarly(rota.Growth):
    ...     least: float = 0.5
    ...
    ...     def choose(self, observation):
    ...         return "deepen 0" if observation.left > self.least else "nothing"
    >>> from rota.core.network import NOTHING, Change
    >>> from rota.core.network import Sight
    >>> from rota.core.network import Structure
    >>> early = Sight(Structure((), ()), (), 8.0, 10.0, (Change("deepen", 0), NOTHING))
    >>> WhileEarly().choose(early), WhileEarly(least=0.9).choose(early)
    ('deepen 0', 'nothing')
    """

    @abstractmethod
    def choose(self, observation: Observation) -> Change | str:
        """Return what is done now: one of `observation.actions`, or how it is written, as `deepen 1`.

        `observation.left` is the time that is left as a share of the budget, `observation.left_s` and
        `observation.budget_s` are in seconds; `observation.structure` is the network, `observation.blocks`
        has the layers of each block that can grow, and `observation.made` what was decided before, as
        positions in the actions. The same must be returned for the same observation. If the network cannot
        be changed so, nothing is.
        """

    def probabilities(self, observation: Observation) -> list[float]:
        """Return 1 for what `choose` returns, and 0 for all else."""
        chosen = self.choose(observation)
        change = Change.parse(chosen) if isinstance(chosen, str) else chosen
        if change not in observation.actions:
            may = ", ".join(map(str, observation.actions))
            raise InputError(f"{type(self).__name__}: chose {change}, which is not offered; choose of {may}")
        return [float(action == change) for action in observation.actions]


SEAM = ClassContract("growth policy", "rota.Growth", {"choose": ("observation",)}, ("probabilities",))
"""What a class must have to be a growth policy."""

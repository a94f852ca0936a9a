"""Changes of a network: what an adaptation policy answers with, and what a tree recording is indexed by."""

from dataclasses import dataclass
from typing import Literal, get_args

from rota.core.errors import ConfigError, unknown

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

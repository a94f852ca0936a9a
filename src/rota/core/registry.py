"""Classes by name: those of rota, and those of others as `module:Class` or `path/to/file.py:Class`."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rota.core.errors import ConfigError, unknown
from rota.core.outside import Seam, find_class, is_outside


@dataclass(frozen=True, slots=True)
class Registry:
    """What can be named in one place of rota."""

    seam: Seam
    known: Mapping[str, str]
    """Name → `module:Class`."""

    def find(self, name: str) -> Any:
        """Return the class behind a name; only its own module is imported."""
        if is_outside(name):
            return find_class(name, self.seam)
        if name not in self.known:
            raise ConfigError(unknown(self.seam.what, name, self.known))
        module, attribute = self.known[name].split(":")
        return getattr(import_module(module), attribute)

    def own_name(self, found: type) -> str | None:
        """Return the name of a class of rota's; none if it is not."""
        named = f"{found.__module__}:{found.__qualname__}"
        return next((name for name, where in self.known.items() if where == named), None)

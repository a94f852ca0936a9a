"""Anything, all alike."""

from rota.core.sight import Sight


class Uniform:
    """Every action is as likely as any other."""

    def probabilities(self, sight: Sight) -> list[float]:
        return [1 / len(sight.actions)] * len(sight.actions)

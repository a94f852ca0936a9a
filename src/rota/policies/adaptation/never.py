"""Leave the network as it is."""

from rota.core.change import NOTHING
from rota.core.sight import Sight


class Never:
    """Nothing, always: what any adaptation must beat."""

    def probabilities(self, sight: Sight) -> list[float]:
        return [float(change == NOTHING) for change in sight.actions]

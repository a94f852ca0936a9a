"""Where a network can grow deeper without computing anything else."""

from torch import nn

from rota.core.errors import unknown
from rota.training.blocks import Block
from rota.training.net2net.chains import chain, in_sequences, layer_name, listed, marked
from rota.training.net2net.graph import View, without_growth
from rota.training.net2net.grown import NotGrowable
from rota.training.net2net.residual import ends, residual
from rota.training.net2net.site import Site


def blocks(network: nn.Module) -> list[str]:
    """The names that `deepen` takes, in forward order: the same ones however often the network has grown.

    If blocks are marked as such, it is those; otherwise it is each convolution or linear layer whose
    activation can be applied twice, and each residual block that ends in such an activation.
    """
    return Finder(network).names()


class Finder:
    """Looks for sites in a network as it is now."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.view = View(network, without_growth(network))
        self.marked = [name for name, part in network.named_modules() if isinstance(part, Block)]
        self.sums = ends(self.view)

    def names(self) -> list[str]:
        """Where `site` finds one."""
        return [name for name in self._candidates() if self._fits(name)]

    def site(self, name: str) -> Site:
        """The place of that name, or why there is none."""
        candidates = self._candidates()
        if name not in candidates:
            raise NotGrowable(unknown("block", name, candidates))
        if name in self.marked:
            return marked(self.view, name)
        if not self.view.traced:
            return listed(self.view, name)
        applied = next((node for node, end in self.sums.items() if end == name), None)
        return chain(self.view, name) if applied is None else residual(self.view, applied, name)

    def _fits(self, name: str) -> bool:
        try:
            self.site(name)
        except NotGrowable:
            return False
        return True

    def _candidates(self) -> list[str]:
        if self.marked:
            return self.marked
        if not self.view.traced:
            return list(in_sequences(self.network))
        named = (self.sums.get(node) or layer_name(self.view, node) for node in self.view.nodes)
        return list(dict.fromkeys(name for name in named if name))

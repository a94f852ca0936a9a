"""Net2Net: networks grow deeper and wider without changing what they compute, and shrink back."""

from rota.training.net2net.deepen import deepen
from rota.training.net2net.identity import NotGrowable
from rota.training.net2net.shrink import carry, shrink
from rota.training.net2net.sites import blocks
from rota.training.net2net.widen import is_wide, layer_in, layers, widen

__all__ = ["NotGrowable", "blocks", "carry", "deepen", "is_wide", "layer_in", "layers", "shrink", "widen"]

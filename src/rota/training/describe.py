"""The structure of a PyTorch network, as policies observe it."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from torch import fx, nn

from rota.core.network import Change, Layer, Observation, Structure
from rota.training.net2net.graph import owners, whole
from rota.training.net2net.identity import before
from rota.training.net2net.sites import Finder

_Conv = nn.modules.conv._ConvNd
_BatchNorm = nn.modules.batchnorm._BatchNorm
Sizes = tuple[tuple[str, int], ...]


def describe(network: nn.Module) -> Structure:
    """Return the network's layers in forward order, and which feeds which.

    If what runs depends on the input, return the layers in the order of their definition, as a chain.
    """
    return located(network)[0]


def located(network: nn.Module) -> tuple[Structure, list[tuple[str, ...]]]:
    """Return the structure, and for each layer the dotted names of the modules around it, its own last."""
    graph = whole(network)
    if graph is None:
        leaves = {name: part for name, part in network.named_modules() if not any(part.children())}
        chain = tuple((i, i + 1) for i in range(len(leaves) - 1))
        return Structure(tuple(map(_layer, leaves.values())), chain), [(name,) for name in leaves]
    return _located(network, graph)


def _located(network: nn.Module, graph: fx.Graph) -> tuple[Structure, list[tuple[str, ...]]]:
    layers: list[Layer] = []
    edges: list[tuple[int, int]] = []
    names: list[tuple[str, ...]] = []
    carries: dict[fx.Node, int | None] = {}
    """Node → the layer that its data come from; None for the network's input and weights."""
    for node in graph.nodes:
        sources = [carries[each] for each in node.all_input_nodes if each in carries]
        if node.op in ("placeholder", "get_attr"):
            if not node.args:  # an argument with a default has it here: it stays a constant
                carries[node] = None
        elif node.op != "output" and sources and not _asks(node):
            edges += sorted({(source, len(layers)) for source in sources if source is not None})
            carries[node] = len(layers)
            layers.append(_step(network, node))
            own = [str(node.target)] if node.op == "call_module" else []
            names.append((*owners(node), *own))
    return Structure(tuple(layers), tuple(edges)), names


def _asks(node: fx.Node) -> bool:
    """Return whether a node only reads the shape or device of its data."""
    return node.target in ("size", "dim") or _name(node) in _ASKED


def _name(node: fx.Node) -> str:
    """Return the name of the function, method or attribute of a node."""
    target = node.args[1] if node.target is getattr else node.target
    return (target if isinstance(target, str) else getattr(target, "__name__", "function")).strip("_")


_ASKED = (
    *("shape", "ndim", "device", "dtype", "layout", "itemsize", "nbytes", "is_cuda", "is_sparse"),
    *("requires_grad", "is_leaf", "eq", "assert"),
)
_KINDS = {  # functions and methods whose name is not the kind
    "iadd": "add",
    "imul": "mul",
    "adaptive_avg_pool1d": "avgpool",
    "adaptive_avg_pool2d": "avgpool",
    "avg_pool2d": "avgpool",
    "max_pool2d": "maxpool",
    "boolean_dispatch": "maxpool",
    "fn": "maxpool",
    "batch_norm": "batchnorm",
    "layer_norm": "layernorm",
    "scaled_dot_product_attention": "attention",
    "view": "reshape",
    "T": "transpose",
    "mT": "transpose",
}


def _step(network: nn.Module, node: fx.Node) -> Layer:
    if node.op == "call_module":
        return _layer(network.get_submodule(str(node.target)))
    name = _name(node)
    return Layer(_KINDS.get(name, name))


def _layer(module: nn.Module) -> Layer:
    for kind, (name, sizes) in _LAYERS.items():
        if isinstance(module, kind):
            found = (_each(size, getattr(module, attribute)) for size, attribute in sizes.items())
            return Layer(name or type(module).__name__.lower(), tuple(chain.from_iterable(found)))
    weights = sum(weight.numel() for weight in module.parameters())
    return Layer(type(module).__name__.lower(), (("weights", weights),) if weights else ())


def _each(name: str, values: Any) -> Sizes:
    """Return one size if all are equal, otherwise one for each dimension."""
    if not isinstance(values, Iterable):
        values = (values,)
    numbers = [int(value or 0) for value in values]
    if len(set(numbers)) == 1:
        return ((name, numbers[0]),)
    return tuple((f"{name}{axis}", number) for axis, number in enumerate(numbers))


_AdaptiveAverage = nn.modules.pooling._AdaptiveAvgPoolNd
_AdaptiveMaximum = nn.modules.pooling._AdaptiveMaxPoolNd
_Average = nn.modules.pooling._AvgPoolNd
_Maximum = nn.modules.pooling._MaxPoolNd
_WINDOW = {"kernel": "kernel_size", "stride": "stride"}

_LAYERS: dict[type, tuple[str, dict[str, str]]] = {  # class → kind (or its own name), size → attribute
    _Conv: ("", {"in": "in_channels", "out": "out_channels", **_WINDOW, "groups": "groups"}),
    nn.Linear: ("linear", {"in": "in_features", "out": "out_features"}),
    _BatchNorm: ("batchnorm", {"out": "num_features"}),
    nn.LayerNorm: ("layernorm", {"out": "normalized_shape"}),
    nn.Embedding: ("embedding", {"in": "num_embeddings", "out": "embedding_dim"}),
    nn.MultiheadAttention: ("attention", {"out": "embed_dim", "heads": "num_heads"}),
    nn.RNNBase: ("", {"in": "input_size", "out": "hidden_size", "layers": "num_layers"}),
    _AdaptiveAverage: ("avgpool", {"out": "output_size"}),
    _AdaptiveMaximum: ("maxpool", {"out": "output_size"}),
    _Average: ("avgpool", _WINDOW),
    _Maximum: ("maxpool", _WINDOW),
}


def observation_of(
    network: nn.Module, *, left_s: float, budget_s: float, actions: Sequence[Change], made: Sequence[int] = ()
) -> Observation:
    """Return the observation of a network at a decision."""
    structure, blocks = with_blocks(network)
    return Observation(structure, blocks, left_s, budget_s, tuple(actions), tuple(made))


def with_blocks(network: nn.Module) -> tuple[Structure, tuple[tuple[int, ...], ...]]:
    """Return the structure, and the layers of each block that can grow, including grown ones."""
    structure, names = located(network)
    finder = Finder(network)
    original = [{before(network, name) for name in inside} for inside in names]
    blocks = []
    for block in finder.names():
        homes = {block, before(network, finder.site(block).part)}
        blocks.append(tuple(at for at, inside in enumerate(original) if _is_in(inside, homes)))
    return structure, tuple(blocks)


def _is_in(inside: set[str], homes: set[str]) -> bool:
    return any(name == home or name.startswith(f"{home}.") for name in inside for home in homes)

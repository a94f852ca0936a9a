"""Sites behind a layer, its normalisation if it has one, and its activation."""

from collections.abc import Iterator

from torch import fx, nn

from rota.training.blocks import Block
from rota.training.net2net.activation import activation_of, is_idempotent
from rota.training.net2net.graph import View
from rota.training.net2net.grown import Grown, NotGrowable, before, original, present
from rota.training.net2net.identity import NORMS, is_layer
from rota.training.net2net.site import Site, behind, neighbours

_TWICE = "ReLU, ReLU6, Hardtanh or Identity, for which twice is once"


def marked(view: View, name: str) -> Site:
    """At the end of a marked block."""
    block = view.network.get_submodule(name)
    view.refuse_shared(name)
    steps = list(_steps(block))
    if type(block).forward is not nn.Sequential.forward or len(steps) < 2:
        raise NotGrowable(f"{name}: is not one layer after the other with an activation at the end")
    if not is_idempotent(steps[-1]):
        raise NotGrowable(f"{name}: ends in {type(steps[-1]).__name__}; it must end in {_TWICE}")
    activation, norm = steps.pop(), None
    if type(steps[-1]) in NORMS and len(steps) > 1:
        norm = steps.pop()
    return Site(name, neighbours(name, steps[-1], norm, activation))


def _steps(block: nn.Module) -> Iterator[nn.Module]:
    for part in block.children():
        if type(part) in (nn.Sequential, Block, Grown):
            yield from _steps(part)
        else:
            yield part


def layer_name(view: View, node: fx.Node) -> str | None:
    """The name of the layer that a node runs if it is a convolution or linear layer."""
    return before(view.network, str(node.target)) if is_layer(view.module(node)) else None


def chain(view: View, name: str) -> Site:
    """Behind the activation of a layer, wherever in the network that is applied."""
    now = present(view.network, name)
    view.refuse_shared(now)
    node = next(each for each in view.nodes if each.op == "call_module" and each.target == now)
    tail = next((user for user in node.users if type(view.module(user)) in NORMS), node)
    if tail is not node:
        view.refuse_shared(str(tail.target))
    applied = next((user for user in tail.users if activation_of(view, user) is not None), None)
    activation = activation_of(view, applied) if applied is not None else None
    if applied is None or activation is None:
        raise NotGrowable(f"{name}: {_followers(view, tail)} comes after it; that must be {_TWICE}")
    like = neighbours(name, view.module(node), view.module(tail) if tail is not node else None, activation)
    if applied.op == "call_module" and not view.shared(str(applied.target)):
        return behind(view.network, Site(str(applied.target), like))
    if len(tail.users) > 1:
        raise NotGrowable(f"{name}: its output is also used without its activation, which is not its own")
    return behind(view.network, Site(str(tail.target), like, ahead=True))


def _followers(view: View, tail: fx.Node) -> str:
    modules = ((user, view.module(user)) for user in tail.users)
    return ", ".join(type(part).__name__ if part else user.name for user, part in modules) or "nothing"


def in_sequences(network: nn.Module) -> Iterator[str]:
    """The layers in plain `nn.Sequential`s, for a network that cannot be followed any other way."""
    for name, part in network.named_modules():
        if type(part) is nn.Sequential:
            inner = (f"{name}.{step}" if name else step for step, _ in part.named_children())
            yield from (before(network, each) for each in inner if is_layer(_built(network, each)))


def listed(view: View, name: str) -> Site:
    """Behind the activation of a layer in a plain `nn.Sequential`."""
    parent, _, step = name.rpartition(".")
    steps = list(original(view.network, parent)._modules)
    following = [f"{parent}.{each}" if parent else each for each in steps[steps.index(step) :]]
    parts = [original(view.network, each) for each in following[:3]]
    norm = parts.pop(1) if len(parts) > 2 and type(parts[1]) in NORMS else None
    if len(parts) < 2 or not is_idempotent(parts[1]):
        what = type(parts[1]).__name__ if len(parts) > 1 else "nothing"
        raise NotGrowable(f"{name}: {what} comes after it; that must be {_TWICE}")
    for each in following[: 3 if norm is not None else 2]:
        view.refuse_shared(present(view.network, each))
    like = neighbours(name, parts[0], norm, parts[1])
    where = present(view.network, following[1 if norm is None else 2])
    return behind(view.network, Site(where, like))


def _built(network: nn.Module, now: str) -> nn.Module:
    part = network.get_submodule(now)
    return part.part if isinstance(part, Grown) else part

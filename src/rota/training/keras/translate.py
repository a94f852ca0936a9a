"""Translation of a network into a Keras model with the same weights and outputs."""

from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.node import map_aggregate, map_arg

from rota.core.errors import InputError
from rota.training.keras.operations import TABLE, Call, Signal, keras, parameter, parts
from rota.training.keras.weights import export_weights, loose_tensors, refuse_unused
from rota.training.net2net.graph import left_out
from rota.training.task import evaluating


class Translator(fx.Interpreter):
    """An interpreter that runs the network and adds each operation to a Keras model."""

    def __init__(self, network: nn.Module, inputs: Tensor) -> None:
        traced = _traced(network)
        super().__init__(traced)
        self.last = traced.graph.output_node()
        self.extra_traceback = False  # errors say what they say, and no more
        self.keras = keras()
        self.network = network
        self.layers: dict[str, Any] = {}
        self.signals: dict[fx.Node, Any] = {}
        self.inputs = inputs
        self.input = self._input(inputs)

    def model(self) -> Any:
        """Return the Keras model."""
        self.run(self.inputs)
        outputs = self._outputs(self.signals[self.last])
        return self.keras.Model(self.input.tensor, outputs, name=type(self.network).__name__)

    def run_node(self, n: fx.Node) -> Any:
        """Run a node of the traced network, and keep its result as a signal."""
        result = super().run_node(n)
        self.signals[n] = self._signal(n, result) if _has_tensors(result) else result
        return result

    def _input(self, inputs: Tensor) -> Signal:
        is_image = inputs.dim() == 4
        shape = tuple(inputs.movedim(1, -1).shape[1:] if is_image else inputs.shape[1:])
        kind = str(inputs.dtype).removeprefix("torch.")
        return Signal(self.keras.Input(shape, dtype=kind, name="inputs"), channels_last=is_image)

    def _outputs(self, signal: Any) -> Any:
        """Return the outputs in containers that Keras knows."""
        if isinstance(signal, dict):
            return {name: self._outputs(part) for name, part in signal.items()}
        if isinstance(signal, tuple | list):
            return tuple(self._outputs(part) for part in signal)
        if not isinstance(signal, Signal):
            raise InputError(f"{_title(self.network)}: answers with {signal!r}, which is not a tensor")
        if len(signal.tensor.shape) == 4 and not signal.channels_last:
            return self.keras.ops.transpose(signal.tensor, (0, 2, 3, 1))
        return signal.tensor

    def _signal(self, node: fx.Node, result: Any) -> Any:
        if node.op == "placeholder":
            return self.input
        args, kwargs = map_arg((node.args, node.kwargs), self.signals.__getitem__)
        if node.op == "output":
            return args[0]
        module = self.network.get_submodule(str(node.target)) if node.op == "call_module" else None
        name = node.name if node.op.startswith("call") and module is None else str(node.target)
        return self._translated(node, Call(self.keras, self.layers, name, module, args, kwargs, result))

    def _translated(self, node: fx.Node, call: Call) -> Any:
        try:
            signals = self._parameter(call) if node.op == "get_attr" else _step(node, call)
        except ValueError as error:
            raise call.refused(f"Keras says: {error}") from error
        _check_shapes(call, signals)
        return signals

    def _parameter(self, call: Call) -> Signal:
        if call.name not in loose_tensors(self.network):
            raise call.refused("it is a tensor that no module of the network owns; make it a buffer")
        return parameter(call, self.input.tensor)


def _traced(network: nn.Module) -> fx.GraphModule:
    if type(network) in TABLE:
        raise InputError(f"{_title(network)}: a layer by itself has no name; put it into nn.Sequential")
    try:
        traced = fx.symbolic_trace(network, concrete_args=left_out(network))
    except Exception as error:  # the network's own code runs on stand-ins and may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"{_title(network)}: its steps cannot be traced ({reason})") from error
    inputs = [node.name for node in traced.graph.nodes if node.op == "placeholder" and not node.args]
    if len(inputs) != 1:
        raise InputError(f"{_title(network)}: takes {len(inputs)} inputs ({', '.join(inputs)}), not one")
    return traced


def _step(node: fx.Node, call: Call) -> Any:
    known: Any = node.target if call.module is None else type(call.module)
    if known not in TABLE:
        title = known if isinstance(known, str) else known.__name__
        raise call.refused(f"unknown operation {title!r}")
    return TABLE[known](call)


def _check_shapes(call: Call, signals: Any) -> None:
    """Raise unless a shape is PyTorch's; Keras does not know sizes that depend on the batch."""
    for tensor, signal in zip(parts(call.result), parts(signals), strict=True):
        expected = tuple(tensor.movedim(1, -1).shape if signal.channels_last else tensor.shape)
        found = tuple(signal.tensor.shape)
        sizes = zip(expected, found, strict=False)
        if len(expected) != len(found) or any(size not in (wanted, None) for wanted, size in sizes):
            raise call.refused(f"Keras gives the shape {found}, PyTorch {expected}")


def _has_tensors(result: Any) -> bool:
    return any(isinstance(part, Tensor) for part in parts(result))


def _title(network: nn.Module) -> str:
    return type(network).__name__


TOLERANCE = 1e-4
"""Allowed difference of outputs, relative to the largest: more than rounding, less than a mistake."""


def to_keras(network: nn.Module, example_inputs: Tensor) -> Any:
    """Return a Keras model that computes what the network does in evaluation mode.

    Inputs have the shape of `example_inputs`, with a batch of any size. The network does not change.
    """
    if not isinstance(example_inputs, Tensor) or example_inputs.dim() < 1 or len(example_inputs) < 1:
        raise InputError("example_inputs: needs a tensor with at least one example in it")
    tensors = [*network.parameters(), *network.buffers()]
    inputs = example_inputs.to(tensors[0].device) if tensors else example_inputs
    with evaluating(network):
        model = Translator(network, inputs).model()
        refuse_unused(network, model)
        export_weights(network, model)
        _check(network, model, inputs)
    return model


def predict(model: Any, inputs: Tensor) -> Any:
    """Return the outputs of a Keras model in evaluation mode, as PyTorch tensors in PyTorch's order."""
    given = inputs.movedim(1, -1) if inputs.dim() == 4 else inputs
    return map_aggregate(model(given.cpu().numpy(), training=False), _from_keras)


def _from_keras(tensor: Any) -> Tensor:
    answer = torch.from_numpy(tensor.numpy().copy())
    return answer.movedim(-1, 1) if answer.dim() == 4 else answer


def _check(network: nn.Module, model: Any, inputs: Tensor) -> None:
    """Compare outputs on a batch of another size, which reveals a size that was taken for a constant."""
    larger = torch.cat([inputs, inputs[:1]])
    both = zip(parts(network(larger)), parts(predict(model, larger)), strict=True)
    if not all(_close(ours, theirs) for ours, theirs in both):
        raise InputError(f"{type(network).__name__}: in Keras it computes something else")


def _close(ours: Tensor, theirs: Tensor) -> bool:
    if ours.shape != theirs.shape:
        return False
    largest = float(ours.abs().max()) if ours.numel() else 0.0
    return torch.allclose(ours.cpu(), theirs, rtol=0.0, atol=TOLERANCE * largest, equal_nan=True)

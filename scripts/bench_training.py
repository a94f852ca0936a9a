"""Measures what the trainer adds to a bare PyTorch loop, and what growing a network costs.

    bash scripts/bench.sh --training [--quick]

Both sides of a ratio run in this process, in turns, on the same data; what is given is the median over the
turns.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from copy import deepcopy

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from rota.training.clock import Length, WallClock
from rota.training.data import load
from rota.training.device import device, synchronise
from rota.training.models.registry import build
from rota.training.net2net import deepen, widen
from rota.training.tasks.supervised import Classification
from rota.training.trainer import Trainer

BATCH = 64
TURNS, STEPS = 9, 60


def bare(
    network: nn.Module, images: torch.Tensor, labels: torch.Tensor, where: torch.device
) -> Callable[[], None]:
    """What one would write: shuffled batches, normalised bytes, Adam, the loss watched, time looked at."""
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    pixels = images.float().div(255)
    mean = pixels.mean((0, 2, 3), keepdim=True).to(where)
    deviation = pixels.std((0, 2, 3), keepdim=True).to(where)
    order = torch.randperm(len(images))

    def run() -> None:
        network.train()
        total = 0.0
        for step in range(STEPS):
            chosen = order[step * BATCH % len(order) :][:BATCH]
            inputs = (images[chosen].to(where).float().div(255) - mean) / deviation
            loss = cross_entropy(network(inputs), labels[chosen].to(where))
            total += loss.item()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        synchronise(where)

    return run


def print_overhead(turns: int) -> None:
    """The trainer against the bare loop, the same steps on the same images."""
    where = device()
    print(f"{'network':12}{'images':>10}{'bare ms/step':>14}{'trainer ms/step':>17}{'ratio':>8}")
    for model, size in (("feedforward2", 8), ("convnet2", 8), ("convnet2", 16), ("convnet3", 16)):
        splits = load("digits", size=size)
        task = Classification(splits, device=where)
        network = build(model, task.inputs, task.outputs).to(where)
        trainer = Trainer(deepcopy(network), task, WallClock(where), length=Length(steps=STEPS))
        sides = [
            bare(network, splits.train.images, splits.train.labels, where),
            lambda trainer=trainer: trainer.epoch(until_s=1e9, evaluate=False),
        ]
        one, other = _in_turns(sides, turns)
        ratios = [b / a for a, b in zip(one, other, strict=True)]
        each = f"{statistics.median(one) / STEPS * 1e3:14.2f}{statistics.median(other) / STEPS * 1e3:17.2f}"
        print(f"{model:12}{f'{size}×{size}':>10}{each}{statistics.median(ratios):8.3f}")


def _in_turns(sides: list[Callable[[], object]], turns: int) -> list[list[float]]:
    found: list[list[float]] = [[] for _ in sides]
    for turn in range(turns + 1):
        for at in range(len(sides)) if turn % 2 else reversed(range(len(sides))):
            began_s = time.perf_counter()
            sides[at]()
            if turn:  # the first one warms up
                found[at].append(time.perf_counter() - began_s)
    return found


def print_growth(turns: int) -> None:
    """What it takes to deepen and to widen a ResNet-18, in time and in memory."""
    print(f"\n{'ResNet-18':22}{'ms':>8}{'MB before':>11}{'after':>8}{'most held at once':>19}")
    network = build("resnet18", (3, 32, 32), 10)
    changes: dict[str, Callable[[nn.Module], None]] = {
        "deepen layer1.0": lambda each: deepen(each, "layer1.0"),
        "deepen layer4.1": lambda each: deepen(each, "layer4.1"),
        "widen layer1.0.conv1": lambda each: widen(each, "layer1.0.conv1", 96),
        "widen layer4.1.conv1": lambda each: widen(each, "layer4.1.conv1", 768),
    }
    for name, change in changes.items():
        times = []
        for turn in range(turns + 1):
            each = deepcopy(network)
            gc.collect()
            before = _megabytes()
            began_s = time.perf_counter()
            change(each)
            if turn:
                times.append(time.perf_counter() - began_s)
        size, grown = _size(network), _size(each)
        held = _most_held(deepcopy(network), change) if before >= 0 else 0.0
        print(f"{name:22}{statistics.median(times) * 1e3:8.1f}{size:11.1f}{grown:8.1f}{held:19.1f}")


def _size(network: nn.Module) -> float:
    tensors = [*network.parameters(), *network.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors) / 1e6


def _megabytes() -> float:
    """Of all tensors that are alive."""
    storages = {}
    for each in gc.get_objects():
        if type(each) in (torch.Tensor, nn.Parameter):
            storage = each.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values()) / 1e6


def _most_held(network: nn.Module, change: Callable[[nn.Module], None]) -> float:
    """The most memory that tensors made since take on top of the network, by PyTorch's own account."""
    with torch.profiler.profile(profile_memory=True) as profile:
        change(network)
    held = most = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return _size(network) if most == 0 else most / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    turns = 3 if parser.parse_args().quick else TURNS
    torch.set_num_threads(1)
    print_overhead(turns)
    print_growth(turns)


if __name__ == "__main__":
    main()

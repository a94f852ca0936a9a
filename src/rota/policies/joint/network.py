"""The network of the joint agent, compiled: scores, and gradients of the logarithms of probabilities.

All weights are one flat array, and so are their gradients. A network with a hidden layer and a linear path
past it scores each candidate; from the hidden layer of the one that was chosen, another row of scores says
for how many intervals.
"""

from typing import NamedTuple

import numpy as np

from rota.core.arrays import Floats
from rota.core.compiled import kernel
from rota.policies.joint.features import ADVISED, FEATURES, GROWS, IDLE, RANKED

LENGTHS = 4
"""Numbers of intervals to choose from: 1, 2, 4, and all that are left."""
TRUST = 3.0
"""Initial weight of the candidate that the rule would choose, which the agent begins by following."""
RELUCTANCE = 2.0
"""How much lower idling, growing and longer assignments begin."""


class JointWeights(NamedTuple):
    """The weights of a joint agent, in the order in which they are flat."""

    a: Floats
    """Features × width."""
    a0: Floats
    b: Floats
    past: Floats
    """The linear path past the hidden layer."""
    lengths: Floats
    """Numbers of intervals × width."""
    lengths0: Floats

    @property
    def flat(self) -> Floats:
        """All weights, one after the other."""
        return np.concatenate([np.asarray(each, np.float64).ravel() for each in self])


def shapes(hidden: int) -> JointWeights:
    """Return the shape of each array, as tuples."""
    return JointWeights((FEATURES, hidden), (hidden,), (hidden,), (FEATURES,), (LENGTHS, hidden), (LENGTHS,))  # type: ignore[arg-type]


def unflattened(flat: Floats, hidden: int) -> JointWeights:
    """Return weights by name."""
    found, at = [], 0
    for shape in shapes(hidden):
        size = int(np.prod(shape))
        found.append(np.asarray(flat[at : at + size]).reshape(shape).copy())
        at += size
    return JointWeights(*found)


def new_weights(hidden: int, seed: int) -> JointWeights:
    """Return the weights with which learning begins: it mostly follows a rule, and rarely grows or idles."""
    random = np.random.default_rng(seed)
    past = np.zeros(FEATURES)
    past[ADVISED], past[IDLE], past[GROWS], past[RANKED] = TRUST, -RELUCTANCE, -RELUCTANCE, 0.5
    lengths0 = np.full(LENGTHS, -RELUCTANCE)
    lengths0[0] = RELUCTANCE
    return JointWeights(
        random.normal(0.0, 0.3, (FEATURES, hidden)), np.zeros(hidden), random.normal(0.0, 0.02, hidden), past,
        np.zeros((LENGTHS, hidden)), lengths0,
    )  # fmt: skip


@kernel
def parts_of_flat(flat, hidden):  # type: ignore[no-untyped-def]
    """Return the arrays of a flat one."""
    n = FEATURES * hidden
    a = flat[:n].reshape((FEATURES, hidden))
    a0, b = flat[n : n + hidden], flat[n + hidden : n + 2 * hidden]
    n += 2 * hidden
    past = flat[n : n + FEATURES]
    n += FEATURES
    lengths = flat[n : n + LENGTHS * hidden].reshape((LENGTHS, hidden))
    n += LENGTHS * hidden
    return a, a0, b, past, lengths, flat[n : n + LENGTHS]


@kernel
def scores(features, count, flat, width, hidden, found):  # type: ignore[no-untyped-def]
    """Fill in the hidden layer and the score of each of the first candidates."""
    a, a0, b, past, _, _ = parts_of_flat(flat, width)
    for row in range(count):
        layer, score = hidden[row], 0.0
        layer[:] = a0
        for i in range(FEATURES):
            value = features[row, i]
            if value != 0.0:
                score += past[i] * value
                for j in range(width):
                    layer[j] += value * a[i, j]
        for j in range(width):
            layer[j] = np.tanh(layer[j])
            score += b[j] * layer[j]
        found[row] = score


@kernel
def score_lengths(layer, allowed, flat, width, found):  # type: ignore[no-untyped-def]
    """Fill in the score of each number of intervals; minus infinity where it is not allowed."""
    _, _, _, _, lengths, lengths0 = parts_of_flat(flat, width)
    for row in range(LENGTHS):
        found[row] = lengths0[row] if allowed[row] else -np.inf
        for j in range(width):
            found[row] += lengths[row, j] * layer[j]


@kernel
def softmax(values, count):  # type: ignore[no-untyped-def]
    """Turn scores into probabilities in place; return their entropy."""
    most, total, entropy = -np.inf, 0.0, 0.0
    for row in range(count):
        most = max(most, values[row])
    for row in range(count):
        values[row] = np.exp(values[row] - most)
        total += values[row]
    for row in range(count):
        values[row] /= total
        if values[row] > 0.0:
            entropy -= values[row] * np.log(values[row])
    return entropy


@kernel
def draw(chances, count):  # type: ignore[no-untyped-def]
    """Return a position, drawn with these probabilities."""
    left, found = np.random.random(), -1
    for row in range(count):
        if chances[row] > 0.0:
            found = row
            left -= chances[row]
            if left < 0.0:
                break
    return found


@kernel
def add_gradient(features, hidden, slopes, count, flat, width, gradient):  # type: ignore[no-untyped-def]
    """Add the gradient of the candidates' scores, weighted by `slopes`."""
    _, _, b, _, _, _ = parts_of_flat(flat, width)
    da, da0, db, dpast, _, _ = parts_of_flat(gradient, width)
    for row in range(count):
        if abs(slopes[row]) < 1e-9:
            continue
        for j in range(width):
            db[j] += slopes[row] * hidden[row, j]
        add_below(features[row], hidden[row], b, slopes[row], width, da, da0)
        for i in range(FEATURES):
            dpast[i] += slopes[row] * features[row, i]


@kernel
def add_below(seen, layer, b, slope, width, da, da0):  # type: ignore[no-untyped-def]
    """Add the gradient of a weighted sum `b` of a hidden layer with regard to what is below it."""
    back = np.empty(width)
    for j in range(width):
        back[j] = slope * b[j] * (1.0 - layer[j] * layer[j])
        da0[j] += back[j]
    for i in range(FEATURES):
        if seen[i] != 0.0:
            for j in range(width):
                da[i, j] += seen[i] * back[j]


@kernel
def add_length_gradient(seen, layer, slopes, flat, width, gradient):  # type: ignore[no-untyped-def]
    """Add the gradient of the scores of numbers of intervals, weighted by `slopes`."""
    _, _, _, _, lengths, _ = parts_of_flat(flat, width)
    da, da0, _, _, dlengths, dlengths0 = parts_of_flat(gradient, width)
    for row in range(LENGTHS):
        if abs(slopes[row]) < 1e-9:
            continue
        dlengths0[row] += slopes[row]
        for j in range(width):
            dlengths[row, j] += slopes[row] * layer[j]
        add_below(seen, layer, lengths[row], slopes[row], width, da, da0)


@kernel
def slopes_of_entropy(chances, count, entropy, slopes):  # type: ignore[no-untyped-def]
    """Fill in the slope of the entropy with regard to each score."""
    for row in range(count):
        slopes[row] = -chances[row] * (np.log(chances[row]) + entropy) if chances[row] > 1e-12 else 0.0

"""How much of what the oracle gains is noise: what is reached by knowing the means of other seeds."""

import numpy as np

from rota.learning.joint.cases import JointCase


def known_from_seeds(case: JointCase) -> float:
    """Return the accuracy that is reached by one who knows what each path reaches on average.

    The average is over trees of the same network and hyper-parameters from other seeds. From the fastest on,
    each slot trains the trial and the path with the best average that it can end before the deadline. A gain
    of the oracle beyond that is of single trainings, unless curves tell it in time.
    """
    means = _means(case)
    left, reached = list(range(len(case.places))), 0.0
    slots = sorted(case.cluster.all_slots, key=lambda slot: -slot.speed_of(_kind(case, 0)))
    accuracy = case.trees.nodes.accuracy
    for slot in slots:
        found = [
            (float(means[trial][node - _start(case, trial)]), trial, node)
            for trial in left
            if trial in means
            for node in _in_time(case, trial, case.deadline_s * slot.speed_of(_kind(case, trial)))
        ]
        if found:
            _, trial, node = max(found)
            left.remove(trial)
            reached = max(reached, float(np.nan_to_num(accuracy[node])))
    return reached


def _start(case: JointCase, trial: int) -> int:
    return int(case.trees.nodes.start[case.places[trial]])


def _kind(case: JointCase, trial: int) -> str:
    return str(case.trees.kinds[case.trees.nodes.structure[_start(case, trial)]].name)


def _means(case: JointCase) -> dict[int, np.ndarray]:
    """Return the mean accuracy of each node of a trial's tree over those of other seeds, if there are any."""
    trees, nodes, found = case.trees.trees, case.trees.nodes, {}
    ends = [*nodes.start[1:].tolist(), len(nodes.accuracy)]
    for trial, place in enumerate(case.places):
        mine = trees[place]
        others = [
            nodes.accuracy[nodes.start[at] : ends[at]]
            for at, tree in enumerate(trees)
            if (tree.model, tree.data, tree.hyper) == (mine.model, mine.data, mine.hyper) and at != place
        ]
        if others:
            found[trial] = np.nan_to_num(np.mean(others, axis=0))
    return found


def _in_time(case: JointCase, trial: int, budget_s: float) -> list[int]:
    """Return the nodes that a trial can reach in so many seconds on a slot of speed 1."""
    nodes, found = case.trees.nodes, []
    level = [(int(child), 0.0) for child in nodes.child[_start(case, trial)] if child >= 0]
    while level:
        node, before_s = level.pop()
        end_s = before_s + float(nodes.node_seconds[node])
        if end_s <= budget_s * (1.0 + 1e-12):
            found.append(node)
            level += [(int(child), end_s) for child in nodes.child[node] if child >= 0]
    return found

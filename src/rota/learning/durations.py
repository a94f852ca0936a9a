"""Durations of jobs predicted by boosted trees, from the jobs that have ended."""

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.columns import GPUS, GROUP, MODEL, SUBMIT_S
from rota.core.durations import NO_HISTORY, by_groups, log_work

FEWEST = 40  # ended jobs from which on trees are grown
DAY_S, WEEK_S = 86400.0, 604800.0


def by_trees(table: Floats, ended: NDArray[np.int32], coming: slice, history: Floats = NO_HISTORY) -> Floats:
    """Predict seconds of work from group, model, gang size, and the time of day and week of submission.

    Until enough jobs have ended, predict by groups. Only that uses the history, which does not say all that
    trees are grown from.
    """
    if len(ended) < FEWEST:
        return by_groups(table, ended, coming, history)
    from sklearn.ensemble import HistGradientBoostingRegressor

    submit_s = table[SUBMIT_S]
    features = np.column_stack(
        [table[GROUP], table[MODEL], np.log2(table[GPUS]), submit_s % DAY_S, submit_s % WEEK_S]
    )
    trees = HistGradientBoostingRegressor(
        max_iter=60, max_leaf_nodes=15, min_samples_leaf=8, early_stopping=False, random_state=0
    )
    trees.fit(features[ended], log_work(table, ended))
    return np.asarray(np.exp(trees.predict(features[coming])))

"""Rankings of the active jobs: list order sorted by a key, stably."""

from rota.core.compiled import kernel
from rota.core.kernels import sort_by
from rota.core.memory import engine_at, ints, order_of_jobs


@kernel
def rank_active(address, key, out):
    """Rank all active jobs by a key, and remember the ranking."""
    e = engine_at(address)
    sort_by(order_of_jobs(e), key, out)
    e.ranked = out.ctypes.data
    e.ranked_n = e.active


@kernel
def rank_again(address, order, key, out):
    """Sort a ranking of all active jobs once more, by another key, and remember it."""
    sort_by(order, key, out)
    note_ranking(address, out)


@kernel
def note_ranking(address, order):
    """Remember a ranking of all active jobs."""
    e = engine_at(address)
    e.ranked = order.ctypes.data
    e.ranked_n = order.shape[0]


@kernel
def ranking_of(e):
    """Return the ranking that was last remembered."""
    return ints(e.ranked, e.ranked_n)

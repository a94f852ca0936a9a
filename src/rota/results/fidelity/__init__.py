"""Fidelity of the simulation: two timelines of the same work, aligned and compared."""

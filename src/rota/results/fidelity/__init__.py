"""How faithful a simulation is: two timelines of the same work, aligned and compared."""

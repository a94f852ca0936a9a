"""Jobs of a cluster for real: gangs and groups on workers, slice by slice."""

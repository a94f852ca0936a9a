"""Real runs of a cluster's jobs: gangs and shared slots, one assignment after the other."""

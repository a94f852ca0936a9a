"""Networks of agents: they read the network in training and score its possible changes."""

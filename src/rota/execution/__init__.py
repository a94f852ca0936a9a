"""Real runs: a controller, its journal, and workers that train."""

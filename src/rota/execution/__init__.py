"""Runs for real: a controller, its journal, and workers that train."""

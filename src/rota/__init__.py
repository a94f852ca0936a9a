"""rota: rehearse the schedule of deep-learning training before running it."""

__version__ = "0.1.0"

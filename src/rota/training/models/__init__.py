"""The networks to train, by name in `registry.py`."""

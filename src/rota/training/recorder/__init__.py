"""Recorders of profiles, curves and trees, which can be stopped and resumed at any time."""

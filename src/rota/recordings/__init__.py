"""Recordings of real training, as plain files: profiles, curves and trees of changes."""

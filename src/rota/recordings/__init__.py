"""What real training left behind, as plain files: profiles, curves and trees of changes."""

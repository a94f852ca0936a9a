"""Train for the record: profiles, curves and trees, resumable at any moment."""

"""A report on one page: what was compared, which policy was best by how much, and all timelines."""

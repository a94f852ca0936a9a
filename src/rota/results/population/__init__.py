"""Results of populations: their files and metrics."""

"""Columns of the table that `ASHA.find_trials_to_prune` reads."""

DB_ITERATION = "iteration"
DB_TRIAL_ID = "trial_id"
DB_METRIC = "metric_"
"""Before the name of a metric."""

"""Learning to schedule jobs: environments in which an agent ranks the active jobs."""

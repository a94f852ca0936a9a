"""Virtual time: jobs and populations simulated on clusters that need not exist."""

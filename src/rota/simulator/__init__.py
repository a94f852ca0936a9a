"""Simulation of jobs and populations in virtual time, on clusters that need not exist."""

"""Placement and growth in one loop: cases, baselines, and the joint agent."""

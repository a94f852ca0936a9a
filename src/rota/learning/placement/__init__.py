"""Agents that place trials on unequal slots, learned in simulation."""

"""Agents that decide how a network grows while it trains, learned from recordings or from real training."""

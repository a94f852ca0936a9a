"""The networks that decide: from what is seen to a score for each action."""

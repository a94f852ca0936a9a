"""One page that shows results: what was compared, who won by how much, and everything that happened."""

"""Learning to place trials on unequal slots."""

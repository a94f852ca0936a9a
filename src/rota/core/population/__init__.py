"""Populations: trials that train interval by interval on unequal slots."""

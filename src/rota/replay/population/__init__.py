"""Populations in virtual time."""

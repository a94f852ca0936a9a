"""Allocation: which trials an idle slot trains next, and for how many steps."""

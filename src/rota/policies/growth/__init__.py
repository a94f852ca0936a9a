"""Growth policies: how a network changes before its next interval."""

from rota.policies.growth.sequences import Fixed, Never

__all__ = ["Fixed", "Never"]

"""Growth policies of populations by name.

To add one: write its class in this folder, add its line here, and run `bash scripts/test.sh tests/policies`.
"""

from rota.core.network import SEAM
from rota.core.registry import Registry

GROWTHS = {
    "never": "rota.policies.growth.sequences:Never",
    "at-start": "rota.policies.growth.rules:AtStart",
    "fixed": "rota.policies.growth.rules:FixedSchedule",
    "stump": "rota.policies.growth.rules:Stump",
    "random": "rota.policies.growth.rules:RandomGrowth",
    "agent": "rota.learning.adapting:AgentGrowth",
}
REGISTRY = Registry(SEAM, GROWTHS)
growth_class = REGISTRY.find

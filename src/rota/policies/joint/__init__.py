"""The joint agent: which trial an idle slot trains, how its network grows first, and for how long."""

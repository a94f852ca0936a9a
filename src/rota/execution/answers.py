"""What workers answer: about trials of a population, and about slices of jobs."""

import json

from rota.execution.jobs.slices import PARTS, JobAnswer, JobAssignment, sliced
from rota.execution.orders import Assignment, Done, FailedAnswer, done

AnyOrder = Assignment | JobAssignment
AnyAnswer = Done | FailedAnswer | JobAnswer


def parse_answer(line: bytes) -> AnyAnswer:
    found = json.loads(line)
    if PARTS in found:
        return sliced(found[PARTS])
    if "metric" in found:
        return done(found)
    return FailedAnswer(**found)

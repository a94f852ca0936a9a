"""Indices into the table of active jobs, into a plan's index and into the table of nodes.

All numbers of all active jobs are in one two-dimensional array with a row per column below. So a kernel takes
one argument, and a policy's sort key is plain arithmetic over whole columns.
"""

# Given: copied from the workload when a job arrives.
REMAINING = 0  # iterations still to do
ITERATION_S = 1  # seconds per iteration, alone on the reference device
STARTUP_S = 2  # seconds a (re)start costs
GPUS = 3  # gang size: slots the job occupies
SUBMIT_S = 4
DURATION_S = 5  # duration in the trace
PRIORITY = 6  # 0 guaranteed, 1 opportunistic
LOAD_S = 7  # the three stages of an iteration: load, compute, synchronise
COMPUTE_S = 8
SYNC_S = 9
MODEL = 10  # index into the workload's models
PROFILE = 11  # index into the workload's distinct (model, gang size) profiles
KINDS = 12  # bit set of the device kinds that it may use; negative for all
JOB = 13  # index into the workload; -1 marks a free row
PREFERENCE = 14  # index into the orders in which jobs prefer the nodes
GROUP = 15  # number of the workload's group and gang size, for what a policy learns from the jobs that ended
ITERATIONS = 16  # iterations that the job takes in all
ESTIMATE = 17  # those that policies that do not know them expect (`rota.core.durations`)
GIVEN = 18  # number of the columns above

# State: updated while the job is active.
EXECUTED_S = 18  # seconds on its slots, start-up included
PACE_S = 19  # current seconds per iteration
STALL_S = 20  # start-up seconds left at SINCE_S
UNSAVED = 21  # iterations since its last checkpoint, at SINCE_S
UNSAVED_S = 22  # productive seconds since its last checkpoint, at SINCE_S
PLACE = 23  # position in the current plan; -1 if it waits
WANTED = 24  # position in the plan last requested
SINCE_S = 25  # when the account of a running job was last closed
REMAINING_THEN = 26  # REMAINING at SINCE_S
EXECUTED_THEN_S = 27  # EXECUTED_S at SINCE_S
END_S = 28  # when a running job will end if nothing happens; not with the cost `interval`
OWN = 29  # the first column that a policy declares for itself

# A plan's index: three rows of integers.
ROW = 0  # job position -> row of the table
UNIT = 1  # job position -> unit (jobs of one unit share its slots)
BEGIN = 2  # unit -> where its slots begin

# A cluster's nodes: rows of integers.
FIRST = 0  # the node's first slot
SIZE = 1  # how many slots it has
SWITCH = 2
KIND = 3
UP = 4  # 1 while the node is in the cluster
FACTS = 5  # number of the rows above

# Then four rows for each order of preference, one order after the other.
LISTED = 0  # position -> node, the preferred one first
NEXT = 1  # node -> the next one at the same switch, in this order; -1 after the last
HEAD = 2  # node -> 1 for the first of a switch, in this order
RANK = 3  # node -> 0 for the most preferred ones, 1 for the next …
PREFERRED = 4  # number of rows of an order

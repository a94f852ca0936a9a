"""The columns of the table of active jobs: their order, in one place.

All numbers of all active jobs live in one two-dimensional array, a row of it per column below, so
that a kernel takes one argument and a policy's sort key is plain arithmetic over whole columns.
"""

# Given: copied from the workload when a job arrives.
REMAINING = 0  # iterations still to do
ITERATION_S = 1  # seconds per iteration, alone on the reference device
STARTUP_S = 2  # seconds a (re)start costs
GPUS = 3  # gang size: slots the job occupies
SUBMIT_S = 4
DURATION_S = 5  # what the trace says it took
PRIORITY = 6  # 0 guaranteed, 1 opportunistic
LOAD_S = 7  # the three stages of an iteration: load, compute, synchronise
COMPUTE_S = 8
SYNC_S = 9
MODEL = 10  # index into the workload's models
PROFILE = 11  # index into the workload's distinct (model, gang size) profiles
KINDS = 12  # bit set of the device kinds it may run on
JOB = 13  # index into the workload; -1 marks a free row
GIVEN = 14  # how many of the columns are given

# Lived: what has become of the job since.
EXECUTED_S = 14  # seconds on its slots, start-up included
PACE_S = 15  # seconds per iteration as it runs now
STALL_S = 16  # start-up seconds it still has to sit through
UNSAVED = 17  # iterations since its last checkpoint
UNSAVED_S = 18  # productive seconds since its last checkpoint
PLACE = 19  # its position in the current plan; -1 waits
WANTED = 20  # its position in the plan last asked for
OWN = 21  # the first column that a policy declares for itself

# A plan's index: three rows of integers.
ROW = 0  # job position -> row of the table
UNIT = 1  # job position -> unit (jobs of one unit share its slots)
BEGIN = 2  # unit -> where its slots begin

# A cluster's nodes: rows of integers.
FIRST = 0  # the node's first slot
SIZE = 1  # how many slots it has
SWITCH = 2
KIND = 3
UP = 4  # 1 while the node is there
NEXT = 5  # the next node at the same switch; -1 after the last
HEAD = 6  # 1 for the first node of a switch

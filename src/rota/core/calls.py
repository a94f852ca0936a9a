"""Calls of compiled code at an address: so the caller is not compiled anew for each callee, nor with it."""

from typing import Any

from numba import types

from rota.core.compiled import intrinsic, kernel

TABLE = types.float64[:, ::1]
ROWS = types.int32[::1]
KEYS = types.float64[::1]

PLAN_TYPES = (types.int64,)
KEY_TYPES = (TABLE, types.int64, types.float64)
SORT_TYPES = (ROWS, KEYS, ROWS)
FIT_TYPES = (types.int64, ROWS, ROWS, types.int64, types.int64, types.int64)
ADVANCE_TYPES = (types.int64,)
COMMIT_TYPES = (types.int64, types.int64, types.int64, types.float64, ROWS)
SINGLES = types.float32[::1]
SCORE_TYPES = (types.float32[:, ::1], SINGLES, KEYS, KEYS)


@intrinsic
def call_plan(typingctx: Any, function: Any, address: Any) -> Any:
    """Call a compiled plan."""
    return _calling(types.none, PLAN_TYPES)


@intrinsic
def call_key(typingctx: Any, function: Any, columns: Any, row: Any, now_s: Any) -> Any:
    """Call a compiled key."""
    return _calling(types.float64, KEY_TYPES)


@intrinsic
def call_sort(typingctx: Any, function: Any, order: Any, key: Any, out: Any) -> Any:
    """Call `kernels.sort_by`."""
    return _calling(types.none, SORT_TYPES)


@intrinsic
def call_fit(
    typingctx: Any, function: Any, address: Any, order: Any, anchors: Any, style: Any, strict: Any, keep: Any
) -> Any:
    """Call `placement.fit`."""
    return _calling(types.int64, FIT_TYPES)


@intrinsic
def call_advance(typingctx: Any, function: Any, address: Any) -> Any:
    """Call `stepping.advance`."""
    return _calling(types.int64, ADVANCE_TYPES)


@intrinsic
def call_commit(
    typingctx: Any, function: Any, address: Any, plan: Any, jobs: Any, wake_s: Any, listed: Any
) -> Any:
    """Call `stepping.commit`."""
    return _calling(types.int64, COMMIT_TYPES)


@intrinsic
def call_score(typingctx: Any, function: Any, jobs: Any, cluster: Any, parameters: Any, scores: Any) -> Any:
    """Call a compiled scorer."""
    return _calling(types.none, SCORE_TYPES)


def _calling(result: Any, arguments: Any) -> Any:
    """Return the signature and the code of a call."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        convention = context.call_conv
        function = builder.inttoptr(args[0], convention.get_function_type(result, arguments).as_pointer())
        status, value = convention.call_function(builder, function, result, arguments, args[1:])
        with builder.if_then(status.is_error, likely=False):
            convention.return_status_propagate(builder, status)
        return value

    return result(types.int64, *arguments), codegen


@kernel
def sort_rows(e, order, key, out):
    """Sort rows by key into `out`, stably."""
    call_sort(e.sort, order, key, out)


@kernel
def place(e, address, order, style, strict, keep):
    """Place jobs first fit, and fill the draft; return how many were placed."""
    return call_fit(e.fit, address, order, order, style, strict, keep)

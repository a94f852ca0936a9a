#!/usr/bin/env bash
# Measures how fast the simulator is on this machine; with --engine what an event costs, with --training what the
# trainer costs, with --learning how fast an agent learns, with --environments how fast agents can schedule jobs,
# with --populations how fast trials are placed, with --sweeps what a sweep costs, with --execution the overhead
# of a real run, with --ray the same on Ray, and that of Ray Tune; with --steadiness how much the speed of this
# machine changes, which no simulation can predict.
set -euo pipefail

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [[ ${1:-} =~ ^--(training|learning|environments|populations|steadiness)$ ]]; then
    python="$(bash "$scripts/setup.sh" train)"
    exec "$python" "$scripts/bench_${1#--}.py" "${@:2}"
fi
if [[ ${1:-} == --sweeps ]]; then
    python="$(bash "$scripts/setup.sh" sweeps)"
    exec "$python" "$scripts/bench_sweeps.py" "${@:2}"
fi
if [[ ${1:-} == --ray ]]; then
    python="$(bash "$scripts/setup.sh" ray tune)"
    exec "$python" "$scripts/bench_ray.py" "${@:2}"
fi
python="$(bash "$scripts/setup.sh")"
if [[ ${1:-} =~ ^--(execution|engine)$ ]]; then
    exec "$python" "$scripts/bench_${1#--}.py" "${@:2}"
fi

exec "$python" "$scripts/bench.py" "$@"

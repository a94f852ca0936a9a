#!/usr/bin/env bash
# Measures how fast the simulator is on this machine; with --training what the trainer costs, with --learning how
# fast an agent learns.
set -euo pipefail

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [[ ${1:-} == --training || ${1:-} == --learning ]]; then
    python="$(bash "$scripts/setup.sh" train)"
    exec "$python" "$scripts/bench_${1#--}.py" "${@:2}"
fi
python="$(bash "$scripts/setup.sh")"

exec "$python" "$scripts/bench.py" "$@"

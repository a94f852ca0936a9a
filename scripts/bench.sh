#!/usr/bin/env bash
# Measures how fast the simulator is on this machine; with --training, what the trainer costs.
set -euo pipefail

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [[ ${1:-} == --training ]]; then
    python="$(bash "$scripts/setup.sh" train)"
    exec "$python" "$scripts/bench_training.py" "${@:2}"
fi
python="$(bash "$scripts/setup.sh")"

exec "$python" "$scripts/bench.py" "$@"

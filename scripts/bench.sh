#!/usr/bin/env bash
# Measures how fast the simulator is on this machine.
set -euo pipefail

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
python="$(bash "$scripts/setup.sh")"

exec "$python" "$scripts/bench.py" "$@"

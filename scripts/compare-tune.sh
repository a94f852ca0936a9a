#!/usr/bin/env bash
# Trains the same population under rota's population-based training on Ray and under Ray Tune's own: time, accuracy
# and overhead side by side, in one table and one figure.
#
#     bash scripts/compare-tune.sh [CONFIG] [--quick] [--repeat N] [--without-functions] [--out DIR] [--set key=value]
#
# Ray Tune is measured with a class whose actors are reused and, as most people write it, with a function, which takes
# minutes and is left out by --without-functions and by --quick.
set -euo pipefail

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
python="$(bash "$scripts/setup.sh" train ray tune)"

exec "$python" "$scripts/compare_tune.py" "$@"

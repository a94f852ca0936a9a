#!/usr/bin/env bash
# Replays a trace under schedulers and draws the figures: scripts/simulate.sh [CONFIG] [--quick] [--set key=value]
set -euo pipefail

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
python="$(bash "$scripts/setup.sh")"

"$python" -P -m rota simulate "$@"
for argument in "$@"; do
    case "$argument" in
        -h | --help* | --json*) exit ;; # nothing was written that could be drawn
    esac
done
exec "$python" -P -m rota plot

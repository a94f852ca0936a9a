#!/usr/bin/env bash
# Draws the figures of what has been simulated.
set -euo pipefail

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
python="$(bash "$scripts/setup.sh")"

exec "$python" -P -m rota plot "$@"

#!/usr/bin/env bash
# Draws every figure of what is in results/; arguments go to `rota plot`.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$(bash "$root/scripts/setup.sh")"

exec "$python" -P "$root/plotting.py" "$@"

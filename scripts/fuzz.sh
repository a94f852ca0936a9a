#!/usr/bin/env bash
# Damages inputs of every kind (traces, configurations, recordings, agents, run folders) and lets commands read them:
# whatever a file says, a command ends in time, with a sentence and never with a traceback. --help says how.
set -euo pipefail

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
python="$(bash "$scripts/setup.sh" train)"
exec "$python" "$scripts/fuzz.py" "$@"

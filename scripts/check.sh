#!/usr/bin/env bash
# Checks what can be checked without running it: style, types, scripts, and that imports follow the layers.
set -euo pipefail
shopt -s nullglob

cd "$(dirname "${BASH_SOURCE[0]}")/.."
python="$(bash scripts/setup.sh dev train tensorflow sweeps lightning ray docs)"

"$python" -P -m ruff check
"$python" -P -m ruff format --check
"$python" -P -m mypy
"$(dirname "$python")/shellcheck" scripts/*.sh setup/*.sh examples/*.sh .ci/run
"$python" -P -m pytest --quiet tests/test_architecture.py tests/test_words.py

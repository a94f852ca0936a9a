#!/usr/bin/env bash
# Runs the tests; arguments go to pytest.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$(bash "$root/scripts/setup.sh" dev train tensorflow sweeps lightning ray)"

tests="$root/tests"
for argument in "$@"; do
    if [[ -e ${argument%%::*} ]]; then tests=""; fi # the caller says which
done
exec "$python" -P -m pytest --config-file "$root/pyproject.toml" --rootdir "$root" ${tests:+"$tests"} "$@"

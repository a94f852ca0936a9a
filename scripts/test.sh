#!/usr/bin/env bash
# Runs the tests; arguments go to pytest. Without any, those that start no cluster run first, in two halves side by
# side; the others, which also kill what they start, have the machine for themselves.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$(bash "$root/scripts/setup.sh" dev train tensorflow sweeps lightning ray)"
pytest=("$python" -P -m pytest --config-file "$root/pyproject.toml" --rootdir "$root")

if [[ $# != 0 ]]; then
    tests="$root/tests"
    for argument in "$@"; do
        if [[ -e ${argument%%::*} ]]; then tests=""; fi # the caller says which
    done
    exec "${pytest[@]}" ${tests:+"$tests"} "$@"
fi

one=(config core figures learning policies recordings)
other=(replay report results training workload)
said="$(mktemp)"
"${pytest[@]}" "${other[@]/#/$root/tests/}" >"$said" 2>&1 &
half=$!
trap 'kill "$half" 2>/dev/null || true; rm -f "$said"' EXIT

failed=0
"${pytest[@]}" "${one[@]/#/$root/tests/}" || failed=$?
wait "$half" || failed=$?
cat "$said"
ignored=("${one[@]}" "${other[@]}")
"${pytest[@]}" "$root/tests" "${ignored[@]/#/--ignore=$root/tests/}" || failed=$?
exit "$failed"

#!/usr/bin/env bash
# Runs the tests; arguments go to pytest. Without any, those that start no cluster run first, in two halves side by
# side; the others, which also kill what they start, have the machine for themselves.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$(bash "$root/scripts/setup.sh" dev train tensorflow sweeps lightning ray docs)"
pytest=("$python" -P -m pytest --config-file "$root/pyproject.toml" --rootdir "$root")

if [[ $# != 0 ]]; then
    tests="$root/tests"
    for argument in "$@"; do
        if [[ -e ${argument%%::*} ]]; then tests=""; fi # the caller says which
    done
    exec "${pytest[@]}" ${tests:+"$tests"} "$@"
fi

one=(config core figures learning library policies recordings test_wheel.py)
other=(report results simulator test_fuzz.py test_notebook.py test_scripts.py test_tour.py training workload)
both=("${one[@]}" "${other[@]}")
said="$(mktemp)" half="" failed=()
trap '[[ -z $half ]] || kill "$half" || true; rm -f "$said"' EXIT
trap 'exit 130' INT # pytest has ended by then, but what runs in the background does not hear it
trap 'exit 143' TERM

"${pytest[@]}" "${other[@]/#/$root/tests/}" >"$said" 2>&1 &
half=$!
"${pytest[@]}" "${one[@]/#/$root/tests/}" || failed+=("${one[*]}")
wait "$half" || failed+=("${other[*]}")
half=""
cat "$said"
"${pytest[@]}" "$root/tests" "${both[@]/#/--ignore=$root/tests/}" || failed+=("the rest")
for part in ${failed[@]+"${failed[@]}"}; do
    echo "test.sh: failed, see above: $part" >&2
done
[[ ${#failed[@]} == 0 ]]

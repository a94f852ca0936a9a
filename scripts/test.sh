#!/usr/bin/env bash
# Runs the tests; arguments go to pytest. Without any, all of them run, in parts, of which three are under way at any
# time: whoever is done begins the next. (On two cores: much of a part is waiting.)
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

# Longest first. Much of the first is waiting, so it goes well with the others.
parts=(
    "execution"
    "engines test_docs.py"
    "commands"
    "library test_wheel.py test_notebook.py test_fuzz.py"
    "sweeps test_examples.py"
    "learning"
    "training"
    "policies simulator"
    "figures report results recordings"
    "" # all others
)
state="$(mktemp -d)" background=""
trap '[[ -z $background ]] || kill -- "-$background" 2>/dev/null || true; rm -rf "$state"' EXIT
trap 'exit 130' INT # pytest has ended by then, but what runs in the background does not hear it
trap 'exit 143' TERM

run_part() {
    local names files
    read -ra names <<<"${parts[$1]}"
    files=("${names[@]/#/$root/tests/}")
    if [[ ${#names[@]} == 0 ]]; then
        read -ra names <<<"${parts[*]}"
        files=("$root/tests" "${names[@]/#/--ignore=$root/tests/}")
    fi
    "${pytest[@]}" "${files[@]}" || echo "${parts[$1]:-the others}" >"$state/$1/failed"
}

# Runs the parts from this one on that nobody else has begun.
run_parts() {
    local number
    for ((number = $1; number < ${#parts[@]}; number++)); do
        if mkdir "$state/$number" 2>/dev/null; then run_part "$number"; fi
    done
}

set -m # so that it can be ended with all that it has started
{
    set +m
    run_parts 1 >"$state/said-1" 2>&1 &
    run_parts 1 >"$state/said-2" 2>&1
    wait
} </dev/null &
background=$!
set +m
run_parts 0
wait "$background"
background=""
cat "$state"/said-*
if ! compgen -G "$state/*/failed" >/dev/null; then exit 0; fi
sed 's/^/test.sh: failed, see above: /' "$state"/*/failed >&2
exit 1

#!/usr/bin/env bash
# Runs the tests; arguments go to pytest. Without any, all of them run, in three processes: those that need Ray or
# Slurm in one (tests/conftest.py says which), the others file by file in whichever process is free.
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

exec "${pytest[@]}" --numprocesses=3 --dist=loadgroup "$root/tests"

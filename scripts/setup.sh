#!/usr/bin/env bash
# Makes sure that rota can run, and prints the Python to run it with:
#
#     python="$(bash scripts/setup.sh dev)"
#
# Installs this checkout, with the extras named as arguments, into the virtual environment that is active, or
# else into .venv, which it makes. Does so only if pyproject.toml has changed since it last did.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
environment="${VIRTUAL_ENV:-$root/.venv}"
python="$environment/bin/python"
stamp="$environment/.rota-setup"
extras="$(IFS=, && echo "$*")"
checkout="$root $(cksum < "$root/pyproject.toml")"

say() { echo "setup: $*" >&2; }
fail() { say "$*" && exit 1; }

known_extras() {
    local table='/^\[project.optional-dependencies\]/,/^\[project.scripts\]/'
    sed -n "$table"'s/^\([a-z]*\) = \[$/\1/p' "$root/pyproject.toml"
}

for extra in "$@"; do
    if ! known_extras | grep -qxF -- "$extra"; then
        say "$extra: there is no such extra; there are: $(known_extras | paste -sd ' ')"
        exit 2
    fi
done

is_ready() { [[ -x $python ]] && grep -qxF "$checkout [$extras]" "$stamp" 2>/dev/null; }

# Runs a command whose output matters only if it fails.
quietly() {
    local output
    output="$("$@" 2>&1)" || { echo "$output" >&2 && return 1; }
}

find_python() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate" && return
        fi
    done
    fail "rota needs Python 3.11 or newer; python3 here is: $(python3 --version 2>&1 || true)"
}

make_environment() {
    local base broken=""
    base="$(find_python)"
    say "making a virtual environment in $environment"
    [[ -x $python ]] || broken=yes
    quietly "$base" -m venv ${broken:+--clear} "$environment" ||
        fail "$base -m venv failed (above). On Debian or Ubuntu: apt-get install python3-venv"
}

install_rota() {
    say "installing rota${extras:+ with $extras} into $environment (minutes the first time)"
    quietly "$python" -m pip install --disable-pip-version-check --editable "$root${extras:+[$extras]}" ||
        fail "pip failed (above)"
}

# Keeps the lines about other extras of this very checkout: what they installed is still there.
remember() {
    local others
    others="$(grep -F "$checkout [" "$stamp" 2>/dev/null || true)"
    printf '%s\n' "$others" "$checkout [$extras]" > "$stamp"
}

if ! is_ready; then
    exec 9< "$root/pyproject.toml"
    flock 9 2>/dev/null || true # one at a time, where that can be had
    if ! is_ready; then
        if ! "$python" -m pip --version > /dev/null 2>&1; then
            [[ -z ${VIRTUAL_ENV:-} ]] || fail "the active environment $VIRTUAL_ENV has no pip: deactivate it"
            make_environment
        fi
        install_rota
        remember
    fi
fi
echo "$python"

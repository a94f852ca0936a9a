#!/usr/bin/env bash
# Step 4 of 4 on a CloudLab node: Python 3.11 or newer, and rota with all that it needs to train.
#
#     bash setup/4-python.sh [--dry-run]
#
# Why: Ubuntu 22.04 has Python 3.10. A Python that is there already is taken; else one from the archives that apt knows,
# unless it is a test version (as 22.04's python3.11 is); else Python 3.12 from ppa:deadsnakes/ppa, a well-known
# archive that is not Ubuntu's own: the step says so before it adds it. The Python of the system stays as it is.
# Then scripts/setup.sh makes .venv in this checkout and installs rota[train,ray,sweeps] into it: several GB, minutes.
# PyTorch comes with CUDA 13, which has no code for GPUs before Turing, such as the V100S of an r7525: where there is
# one, PyTorch's own archive of builds with CUDA 12.6 is used in addition to the usual one.
# Run it as yourself: it asks for sudo where it needs it, and .venv should be yours.
#
# --dry-run prints what it would run, and changes nothing. A second run finds that there is nothing to do.
set -euo pipefail
# shellcheck source=setup/steps.sh
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

EXTRAS=(train ray sweeps)
ROOM_GB=15 # PyTorch with CUDA: 3 GB to download, 8 GB installed; Ray; what pip unpacks meanwhile
VERSIONS="3.12 3.11"
PPA=ppa:deadsnakes/ppa
OLDER=https://download.pytorch.org/whl/cu126

environment="${VIRTUAL_ENV:-$root/.venv}"

# ---- what is there

need_own_checkout() {
    if is_root && [[ -n ${SUDO_USER:-} ]]; then
        fail "run it without sudo (bash setup/$step): it asks for it where needed, and .venv should belong to $SUDO_USER"
    fi
    [[ -w $root ]] ||
        fail "$root is not yours to write to. Make it yours: sudo chown -R $(id -un) '$root'; then run this step again"
}

need_room() {
    local free
    free=$(($(df --output=avail --block-size=1 "$root" | tail -n 1) / 1000000000))
    ((free >= ROOM_GB)) ||
        fail "$free GB are free where $root is, and it takes $ROOM_GB; make room, with: sudo bash setup/1-disk.sh"
}

is_recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; }
can_make_environments() { "$1" -c 'import ensurepip, venv' 2> /dev/null; }
has_environment() { [[ -x $environment/bin/python ]] && is_recent "$environment/bin/python"; }

# The one that scripts/setup.sh would take.
find_python() {
    local python
    for python in python3 python3.14 python3.13 python3.12 python3.11; do
        if is_recent "$python"; then echo "$python" && return; fi
    done
}

# Whether a GPU has a compute capability below 7.5.
has_old_gpu() {
    nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null |
        awk '/^[0-9.]+$/ && $1 < 7.5 { old = 1 } END { exit !old }'
}

# ---- what is done

is_test_version() { [[ $1 == *~a[0-9]* || $1 == *~b[0-9]* || $1 == *~rc[0-9]* ]]; }

# The first version that apt has, and that has been released.
version_in_apt() {
    local version found
    for version in $VERSIONS; do
        found="$(candidate "python$version")"
        if [[ -n $found ]] && ! is_test_version "$found"; then echo "$version" && return; fi
    done
}

add_archive() {
    say "apt has no released Python of ${VERSIONS// / or }: adds $PPA, which is not Ubuntu's own archive"
    if ! has add-apt-repository; then install_packages software-properties-common; fi
    run "${sudo[@]}" add-apt-repository --yes "$PPA" || fail "$PPA cannot be added (above); is there a network?"
    update_packages
}

install_python() {
    local version
    update_packages
    version="$(version_in_apt)"
    if [[ -z $version ]]; then
        add_archive
        version="${VERSIONS%% *}"
    fi
    install_packages "python$version" "python$version-venv"
}

add_venv() {
    local version
    version="$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
    say "$1 is Python $version, but cannot make environments"
    update_packages
    install_packages "python$version-venv"
}

make_python() {
    local python
    python="$(find_python)"
    if [[ -n $python ]] && can_make_environments "$python"; then
        already "$python is $("$python" --version)"
        return
    fi
    need_apt
    use_sudo
    if [[ -n $python ]]; then add_venv "$python"; else install_python; fi
}

install_rota() {
    local install=(bash "$root/scripts/setup.sh" "${EXTRAS[@]}")
    if has nvidia-smi && has_old_gpu; then
        say "a GPU here is older than CUDA 13 can do: PyTorch with CUDA 12.6, from $OLDER"
        install=(env "PIP_EXTRA_INDEX_URL=${PIP_EXTRA_INDEX_URL:+$PIP_EXTRA_INDEX_URL }$OLDER" "${install[@]}")
    fi
    run "${install[@]}" ||
        fail "rota could not be installed (above). If pip could not fetch, is there a network? Then run this step again"
}

read_arguments "" "$@"
need_own_checkout
if has_environment; then
    already "there is an environment in $environment"
else
    need_room
    make_python
fi
install_rota
next_step "look whether all is there (no need to reboot): $(quoted "$environment/bin/python" "$root/setup/check.py" --need gpu,ray)"

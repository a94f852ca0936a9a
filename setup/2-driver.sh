#!/usr/bin/env bash
# Step 2 of 4 on a CloudLab node: installs NVIDIA's driver, except for the kernel module, which is step 3.
#
#     sudo bash setup/2-driver.sh [--dry-run] [--driver 580-server]
#
# Why: CloudLab's images have no driver, and PyTorch brings all of CUDA but the driver. It is branch 580, from Ubuntu's own
# archive: CUDA 13, which PyTorch is built with, needs 580 or newer, and 580 is the last for the V100S of an r7525.
# For the same reason it is not the "open" one, which has no support for a V100S. An A30 (d7525) works with it as well.
# A driver that is new enough stays as it is; an older one from apt is replaced; one that did not come from apt is
# refused. --driver names another branch, as in the names of Ubuntu's packages nvidia-utils-….
#
# --dry-run prints what it would run, and changes nothing. A second run finds that there is nothing to do.
set -euo pipefail
# shellcheck source=setup/steps.sh
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

BRANCHES="580-server 580"
OLDEST=580

NEXT="sudo bash setup/3-module.sh (no need to reboot before)"

# NVIDIA's display and 3D controllers on the PCI bus.
gpus() { lspci -n -d 10de: | grep -cE '^[^ ]+ 030[02]:' || true; }

need_gpu() {
    has lspci || fail "there is no lspci here; install it: apt-get install pciutils"
    local count
    count="$(gpus)"
    ((count)) || fail "there is no NVIDIA GPU in this machine, so it needs no driver; go on with: bash setup/4-python.sh"
    say "NVIDIA GPUs in this machine: $count"
}

# The version of what apt has installed.
packaged() { installed 'nvidia-utils-*' | awk '{ print $2 }' | head -n 1; }

is_new_enough() { [[ $1 =~ ^([0-9]+) ]] && ((BASH_REMATCH[1] >= OLDEST)); }

need_no_stranger() {
    if has nvidia-smi && [[ -z $(packaged) ]]; then
        fail "a driver (${1:-of unknown version}) is here that did not come from apt, and is too old or does not work." \
            "Remove it the way it came (for NVIDIA's .run file: sudo nvidia-uninstall), and run this step again"
    fi
}

choose_branch() {
    local branch
    for branch in ${given[--driver]:-$BRANCHES}; do
        if [[ -n $(candidate "nvidia-utils-$branch") ]]; then echo "$branch" && return; fi
    done
    [[ -n $dry_run ]] || fail "apt knows no package nvidia-utils-… of the branch ${given[--driver]:-580}." \
        "Is there a network, and is 'restricted' in /etc/apt/sources.list? See: apt-cache search --names-only '^nvidia-utils-'"
    echo "${given[--driver]:-${BRANCHES%% *}}"
}

install_driver() {
    local branch
    update_packages
    branch="$(choose_branch)"
    if [[ -n $1 ]]; then
        say "driver $1 is here, older than $OLDEST, which CUDA 13 needs; $branch takes its place, after a reboot"
    fi
    install_packages "nvidia-headless-no-dkms-$branch" "nvidia-utils-$branch"
}

read_arguments "--driver" "$@"
need_apt
need_gpu
version="$(running_driver)"
if is_new_enough "$version"; then
    already "driver $version is running"
elif is_new_enough "$(packaged)"; then
    already "driver $(packaged) is installed; it is not running yet, which is what step 3 is for"
else
    need_no_stranger "$version"
    need_root
    install_driver "${version:-$(packaged)}"
fi
next_step "$NEXT"

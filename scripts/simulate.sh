#!/usr/bin/env bash
# Simulates the shipped workload under every scheduler, populations under every allocation, one of them on unequal GPUs
# with measured step times, and draws the figures.
#
#     bash scripts/simulate.sh [CONFIG] [--quick] [--set key=value] [--out DIR] …
#
# Arguments go to `rota simulate`; with any but --quick and --out, only what they ask for is simulated. Runs go to
# results/simulate (results/quick with --quick) unless --out says otherwise, figures to plots/; runs that are
# there already, made from the same inputs, are reused, and others there are replaced.
set -euo pipefail

# shellcheck source=scripts/arguments.sh
source "$(dirname "${BASH_SOURCE[0]}")/arguments.sh"
python="$(bash "$root/scripts/setup.sh")"

runs="${here}results/simulate" quick="" draw=yes out="" populations=yes
for argument in "$@"; do
    [[ $out != next ]] || { runs="$argument" && out=given && continue; }
    case "$argument" in
        --quick) quick=--quick ;;
        --out) out=next ;;
        --out=*) runs="${argument#--out=}" && out=given ;;
        -h | --help | --help-config | --json) draw="" ;;
        *) populations="" ;;
    esac
done
[[ -z $quick || $out == given ]] || runs="${here}results/quick"
replace=() # only what is the script's own
[[ $out == given ]] || replace=(--replace)

if [[ -z $draw ]]; then
    exec "$python" -P -m rota simulate "$@"
fi
"$python" -P -m rota simulate --out "$runs" ${replace[@]+"${replace[@]}"} "$@"
if [[ -n $populations ]]; then
    for config in populations gpus; do
        "$python" -P -m rota simulate "${here}config/simulate/$config.toml" --out "$runs/$config" \
            ${replace[@]+"${replace[@]}"} ${quick:+"$quick"}
    done
fi
exec "$python" -P -m rota plot "$runs" --out "${here}plots" --count ${quick:+"$quick"}

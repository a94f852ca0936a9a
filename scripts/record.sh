#!/usr/bin/env bash
# Records: trains what is measured, and shows what there is then.
#
#     bash scripts/record.sh [CONFIG…] [--quick] [--out FOLDER] [--workers N] [--set key=value] …
#
# Without CONFIG: everything that results/recordings ships, which takes hours; what is there is not made again.
# --quick records a tree, curves and profiles of tiny networks on the digits into results/quick-recordings.
# Stop it at any moment: the same command goes on from there.
set -euo pipefail

# shellcheck source=scripts/arguments.sh
source "$(dirname "${BASH_SOURCE[0]}")/arguments.sh"
python="$(bash "$root/scripts/setup.sh" train)"

read_arguments record "--quick" "--workers --set" "" "$@"
out="${out:-${here}results/recordings}" configs=(${names[@]+"${names[@]}"}) quick=""
[[ $switches != *" --quick "* ]] || quick=yes
if [[ -n $quick && ${#configs[@]} != 0 ]]; then
    mistake "--quick: has a configuration of its own; leave it or ${configs[0]} out"
fi
if [[ -n $quick ]]; then
    configs=("${here}config/record/quick.toml")
    [[ $out != "${here}results/recordings" ]] || out="${here}results/quick-recordings"
elif [[ ${#configs[@]} == 0 ]]; then
    for name in profiles profiles-resnet8 curves trees-convnet2 trees-convnet3 growth-pairs; do
        configs+=("${here}config/record/$name.toml")
    done
fi

"$python" -P -m rota record "${configs[@]}" --out "$out" ${arguments[@]+"${arguments[@]}"}
figure="$out/overview.png" # with the recordings, but for those that are shipped
[[ $out != "${here}results/recordings" ]] || figure="${here}plots/recordings/overview.png"
exec "$python" -P -m rota recordings describe "$out" --figure "$figure"

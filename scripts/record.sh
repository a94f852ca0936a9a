#!/usr/bin/env bash
# Trains for the record, and shows what there is then.
#
#     bash scripts/record.sh [CONFIG…] [--quick] [--out FOLDER] [--workers N] [--set key=value] …
#
# Without CONFIG: everything that results/recordings ships, which takes hours; what is there is not made again.
# --quick records a tree, curves and profiles of tiny networks on the digits into results/quick-recordings.
# Stop it at any moment: the same command goes on from there.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$(bash "$root/scripts/setup.sh" train)"
here="$root/"
[[ $PWD != "$root" ]] || here="" # so that recordings do not quote where the checkout is

out="${here}results/recordings" configs=() arguments=() quick="" next=""
for argument in "$@"; do
    case "$next:$argument" in
        out:*) out="$argument" && next="" && continue ;;
        argument:*) next="" && arguments+=("$argument") && continue ;;
        :--quick) quick=yes && continue ;;
        :--out) next=out && continue ;;
        :--out=*) out="${argument#--out=}" && continue ;;
        :--workers | :--set) next=argument ;;
        :-h | :--help)
            sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
            exec "$python" -P -m rota record --help
            ;;
    esac
    if [[ $argument == -* ]]; then arguments+=("$argument"); else configs+=("$argument"); fi
done
if [[ -n $next ]]; then
    echo "record.sh: ${*: -1}: what? Give it a value" >&2
    exit 2
fi
if [[ -n $quick && ${#configs[@]} != 0 ]]; then
    echo "record.sh: --quick: has a configuration of its own; leave it or ${configs[0]} out" >&2
    exit 2
fi
if [[ -n $quick ]]; then
    configs=("${here}config/record/quick.toml")
    [[ $out != "${here}results/recordings" ]] || out="${here}results/quick-recordings"
elif [[ ${#configs[@]} == 0 ]]; then
    for name in profiles curves trees-convnet2 trees-convnet3; do
        configs+=("${here}config/record/$name.toml")
    done
fi

"$python" -P -m rota record "${configs[@]}" --out "$out" ${arguments[@]+"${arguments[@]}"}
figure="$out/overview.png" # beside the recordings, but for those that are shipped
[[ $out != "${here}results/recordings" ]] || figure="${here}plots/recordings/overview.png"
exec "$python" -P -m rota recordings describe "$out" --figure "$figure"

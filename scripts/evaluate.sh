#!/usr/bin/env bash
# Says how good the agents are that scripts/learn.sh has learned, and what agents do where they have not learned.
#
#     bash scripts/evaluate.sh [--quick] [--recordings PATH…]
#
# Evaluates all in results/learn on the shipped recordings, and the one that places trials beside every rule; learns agents that leave out a scenario, or a model, and
# evaluates them there. Into results/evaluate, figures into plots/evaluate. --quick: of what learn.sh --quick made.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$(bash "$root/scripts/setup.sh" train)"
here="$root/"
[[ $PWD != "$root" ]] || here="" # so that figures do not quote where the checkout is

quick="" recordings=()
while [[ $# -gt 0 ]]; do
    case "$1" in
        --quick) quick=quick- && shift ;;
        --recordings)
            shift
            while [[ $# -gt 0 && $1 != -* ]]; do recordings+=("$1") && shift; done
            ;;
        -h | --help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" && exit ;;
        *) echo "evaluate.sh: $1: unknown; see --help" >&2 && exit 2 ;;
    esac
done
[[ ${#recordings[@]} -gt 0 ]] || recordings=("${here}results/recordings/trees")
agents="${here}results/${quick}learn" out="${here}results/${quick}evaluate" figures="${here}plots/${quick}evaluate"
few=()
[[ -z $quick ]] || few=(--set seeds=[0] --set episodes=6400)

if [[ ! -d $agents ]]; then
    echo "evaluate.sh: nothing in $agents yet; learn first: bash scripts/learn.sh${quick:+ --quick}" >&2
    exit 2
fi
for family in "$agents"/*/; do
    name="$(basename "$family")" on=(--recordings "${recordings[@]}")
    [[ $name != place ]] || on=() # it places trials on random slots
    "$python" -P -m rota evaluate --agent "$agents/$name" ${on[@]+"${on[@]}"} --out "$out/$name" --figures "$figures/$name"
done
for what in scenario model; do
    echo "leaving out each $what:"
    "$python" -P -m rota evaluate "${here}config/learn/unseen.toml" --leave-out "$what" --recordings "${recordings[@]}" \
        --out "$out/without-$what" --figures "$figures/without-$what" ${few[@]+"${few[@]}"}
done

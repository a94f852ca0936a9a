#!/usr/bin/env bash
# Says how good the agents are that scripts/learn.sh has learned, and what agents do where they have not learned.
#
#     bash scripts/evaluate.sh [--quick] [--recordings PATH…]
#
# Evaluates all in results/learn on the shipped recordings, and compares the ones that place trials with rules;
# learns agents that leave out a scenario, or a model, and evaluates them there. Into results/evaluate, figures into
# plots/evaluate. --quick: of what learn.sh --quick made.
set -euo pipefail

# shellcheck source=scripts/arguments.sh
source "$(dirname "${BASH_SOURCE[0]}")/arguments.sh"
python="$(bash "$root/scripts/setup.sh" train)"

read_arguments "" "--quick" "" "--recordings" "$@"
quick="" recordings=()
[[ $switches != *" --quick "* ]] || quick=quick-
unknown=(${names[@]+"${names[@]}"} ${out:+--out})
for argument in ${arguments[@]+"${arguments[@]}"}; do
    case "$argument" in
        --recordings) ;;
        -*) unknown+=("$argument") ;;
        *) recordings+=("$argument") ;;
    esac
done
[[ ${#unknown[@]} == 0 ]] || mistake "${unknown[0]}: unknown; see --help"
[[ ${#recordings[@]} -gt 0 ]] || recordings=("${here}results/recordings/trees")
agents="${here}results/${quick}learn" out="${here}results/${quick}evaluate" figures="${here}plots/${quick}evaluate"
few=() cases=200
[[ -z $quick ]] || cases=2
[[ -z $quick ]] || few=(--set seeds=[0] --set episodes=6400)

if [[ ! -d $agents ]]; then
    mistake "nothing in $agents yet; learn first: bash scripts/learn.sh${quick:+ --quick}"
fi
for family in "$agents"/*/; do
    name="$(basename "$family")" on=(--recordings "${recordings[@]}")
    [[ $name != place ]] || on=() # it places trials on random slots
    [[ $name != joint-growth ]] || on=(--recordings "${here}results/recordings/growth" --cases "$cases")
    found=("$name")
    for agent in "$agents/$name"/seed*/agent.json; do # learn.sh --full learns a joint agent of each seed
        [[ $name != joint-growth || ! -f $agent ]] || found+=("$name/$(basename "$(dirname "$agent")")")
    done
    [[ ${#found[@]} == 1 || -f $agents/$name/agent.json ]] || found=("${found[@]:1}")
    for each in "${found[@]}"; do
        "$python" -P -m rota evaluate --agent "$agents/$each" ${on[@]+"${on[@]}"} --out "$out/$each" --figures "$figures/$each"
    done
done
for what in scenario model; do
    echo "leaving out each $what:"
    "$python" -P -m rota evaluate "${here}config/learn/unseen.toml" --leave-out "$what" --recordings "${recordings[@]}" \
        --out "$out/without-$what" --figures "$figures/without-$what" ${few[@]+"${few[@]}"}
done

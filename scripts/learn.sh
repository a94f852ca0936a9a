#!/usr/bin/env bash
# Learns every family of agents from the shipped recordings, the one that places trials, on random slots in the
# simulator, and the joint one that places them and lets them grow; scripts/evaluate.sh then says how good they are.
#
#     bash scripts/learn.sh [CONFIG…] [--quick | --full] [--out FOLDER] [--set key=value] [--recordings PATH…] …
#
# Without CONFIG: all in config/learn, into results/learn; what is there already, learned in the same way, stays.
# --quick learns little of each family, in a minute; --full gives the original agent as many episodes as it had, and
# learns five joint agents. Other arguments go to `rota learn`, and are about recordings of single networks: with any,
# the agents that place trials are left out unless their CONFIG is given. Stop it at any moment: the same command goes on from there.
set -euo pipefail

# shellcheck source=scripts/arguments.sh
source "$(dirname "${BASH_SOURCE[0]}")/arguments.sh"
python="$(bash "$root/scripts/setup.sh" train)"

read_arguments learn "--quick --full" "--workers --set --seed" "--recordings" "$@"
configs=(${names[@]+"${names[@]}"})
count="${switches% }"
count="${count##* }" # the last one, if there are several
if [[ ${#configs[@]} == 0 ]]; then
    for name in pooled scratch transfer curricula models; do
        configs+=("${here}config/learn/$name.toml")
    done
    [[ ${#arguments[@]} != 0 ]] || configs+=("${here}config/learn/place.toml" "${here}config/learn/joint-growth.toml")
fi
quick=""
[[ $count != --quick ]] || quick=quick-
[[ -n $out ]] || out="${here}results/${quick}learn"

# What a family is learned with: all that its file says, or less of it, or as much as the original had.
settings() {
    case "$count $1" in
        "--quick pooled") echo --set seeds=[0] --set episodes=25600 ;;
        "--quick scratch") echo --set 'models=["convnet2"]' --set 'grid.stages=[["early"],["late"]]' --set episodes=200 ;;
        "--quick transfer") echo --set 'grid.stages=[["early","late"]]' --set 'grid.temperature=[1,10]' --set episodes=200 --set transfer_episodes=200 ;;
        "--quick curricula" | "--quick models") echo --set episodes=50 --set transfer_episodes=50 ;;
        "--quick place") echo --set placement.updates=4 --set placement.cases_per_update=2 --set placement.tests=2 ;;
        "--quick joint-growth") echo --set joint.updates=4 --set joint.cases_per_update=2 --set joint.rule_cases=2 ;;
        "--full joint-growth") echo --seed 0 --seed 1 --seed 2 --seed 3 --seed 4 ;;
        "--full scratch") echo --set episodes=75000 ;;
        "--full transfer" | "--full curricula" | "--full models") echo --set episodes=75000 --set transfer_episodes=10000 ;;
    esac
}

for config in "${configs[@]}"; do
    name="$(basename "$config" .toml)"
    read -r -a more <<< "$(settings "$name")"
    [[ $count != --quick ]] || more+=(--workers 1) # starting others would take longer than what they have to do
    echo "learn.sh: $config" >&2
    "$python" -P -m rota learn "$config" --out "$out/$name" ${more[@]+"${more[@]}"} ${arguments[@]+"${arguments[@]}"}
done

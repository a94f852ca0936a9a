#!/usr/bin/env bash
# How faithful is a simulation? For each workload: records on this machine what it costs, simulates it from the
# recordings, runs it, and compares the two timelines.
#
#     bash scripts/fidelity.sh [WORKLOAD…] [--quick] [--reuse] [--out DIR]
#
# Workloads: population (20 trials that evolve, on two cores, with data from slow storage: four minutes); srtf and
# tiresias (30 jobs of three kinds under schedulers that were not used while other jobs were recorded, under fifo: three
# minutes each). These three if none is named; there is also computing (a population that waits for nothing: it is predicted
# as well as the machine keeps its speed). Recordings, runs and numbers go to results/fidelity, figures to plots/fidelity;
# what was there is made anew, except for recordings with --reuse, and a folder with anything else in it is refused.
# Exits with 1 if a makespan is off by more than 5 % or a mean JCT by more than 8 %. --quick is for trying it out: too
# short to say anything, so nothing is asked of it. Leave the machine alone meanwhile.
set -euo pipefail

# shellcheck source=scripts/arguments.sh
source "$(dirname "${BASH_SOURCE[0]}")/arguments.sh"
python="$(bash "$root/scripts/setup.sh" train)"

usual=(population srtf tiresias)
all=("${usual[@]}" computing)
quick="" reuse=""
read_arguments "" "--quick --reuse" "" "" "$@"
[[ $switches != *" --quick "* ]] || quick=yes
[[ $switches != *" --reuse "* ]] || reuse=yes
workloads=(${names[@]+"${names[@]}"})
for name in ${names[@]+"${names[@]}"} ${arguments[@]+"${arguments[@]}"}; do
    [[ " ${all[*]} " == *" $name "* ]] || mistake "$name: not a workload; there are: ${all[*]}"
done
[[ ${#workloads[@]} != 0 ]] || workloads=("${usual[@]}")
name="${quick:+quick-}fidelity"
out="${out:-${here}results/$name}"
configs="${here}config/fidelity"
failed=""

rota() { "$python" -P -m rota "$@"; }

# Marks the folder as this script's, unless there is something else in it.
mark="$out/.fidelity"
if [[ -d $out && ! -e $mark && -n $(ls -A "$out") ]]; then
    mistake "--out $out: has something else in it; give a new folder"
fi
mkdir -p "$out"
touch "$mark"

# Takes a folder of ours away: what is in it is made anew.
clear_away() { rm -rf -- "$1"; }

# Compares what was run with what was simulated: compare WORKLOAD.
compare() {
    local limits=(--within "5,8") figure="${here}plots/$name/$1"
    [[ -z $quick ]] || limits=()
    rota compare "$out/$1/real" "$out/$1/simulated" --out "$out/$1" --figure "$figure.png" --figure "$figure.svg" \
        ${limits[@]+"${limits[@]}"} || failed=yes
}

# A population that evolves: its curves, and what its parts cost with two of them side by side.
population() { evolve population; }

# The same that waits for no storage, three times as large to take as long: all of its time is this machine's.
computing() {
    evolve computing "curves.setup.storage_mb_s=1e6" "training.storage_mb_s=1e6" "population.trials=60"
}

# Records, simulates and runs a population: evolve WORKLOAD [SETTING…], each setting for the commands that know it.
evolve() {
    local recordings="$out/$1/recordings" record=() run=() both=() setting
    for setting in "${@:2}"; do
        case "$setting" in
            curves.*) record+=(--set "$setting") ;;
            training.*) run+=(--set "$setting") ;;
            *) both+=(--set "$setting") ;;
        esac
    done
    if [[ -n $quick ]]; then
        record+=(--set curves.intervals=4 --set curves.steps=10 --set "curves.grid.lr=[0.01, 0.1]"
            --set "curves.grid.momentum=[0.9]")
        both+=(--set population.trials=4 --set population.steps=40 --set population.interval=10)
    fi
    [[ -n $reuse ]] || clear_away "$recordings"
    clear_away "$out/$1/real"
    rota record "$configs/population-record.toml" --out "$recordings" ${record[@]+"${record[@]}"}
    rota simulate "$configs/population-simulate.toml" --out "$out/$1/simulated" \
        --set "population.curves=$recordings/curves/population" ${both[@]+"${both[@]}"}
    rota run "$configs/population-run.toml" --out "$out/$1/real" ${both[@]+"${both[@]}"} ${run[@]+"${run[@]}"}
    compare "$1"
}

# Jobs of three kinds under a scheduler: jobs SCHEDULER. What they take is recorded from a run of others, once.
jobs() {
    local recording="$out/jobs/recording" few=() round=()
    [[ -z $quick ]] || few=(--set workload.jobs=2 --set assignment_s=0.1) round=(--set workload.jobs=9)
    if [[ -z $recorded ]]; then
        local asked="$out/jobs/asked" now
        now="$(cat "$configs/jobs-run.toml" "$configs/jobs-record.csv" | cksum) $quick"
        [[ -n $reuse ]] || clear_away "$out/jobs"
        if [[ -e $recording && $(cat "$asked" 2>/dev/null) != "$now" ]]; then
            mistake "$recording: was recorded with other settings; leave --reuse out"
        fi
        if [[ ! -e $recording ]]; then
            mkdir -p "$out/jobs"
            echo "$now" >"$asked"
            rota run "$configs/jobs-run.toml" --out "$out/jobs/recorded" --set scheduler=fifo \
                --set "workload.trace=$configs/jobs-record.csv" ${round[@]+"${round[@]}"}
            rota recordings from-run "$out/jobs/recorded" --out "$recording"
        fi
        recorded=yes
    fi
    clear_away "$out/$1/real"
    rota simulate "$configs/jobs-simulate.toml" --out "$out/$1/simulated" --schedulers "$1" \
        --set "workload.profiles=$recording" ${few[@]+"${few[@]:0:2}"}
    rota run "$configs/jobs-run.toml" --out "$out/$1/real" --set "scheduler=$1" \
        --set "workload.profiles=$recording" ${few[@]+"${few[@]}"}
    compare "$1"
    echo "the same, predicted from the step times of the run itself:"
    clear_away "$out/$1/pace"
    rota recordings from-run "$out/$1/real" --out "$out/$1/pace"
    rota simulate "$configs/jobs-simulate.toml" --out "$out/$1/at-real-pace" --schedulers "$1" \
        --set "workload.profiles=$out/$1/pace" ${few[@]+"${few[@]:0:2}"}
    rota compare "$out/$1/real" "$out/$1/at-real-pace"
}

srtf() { jobs srtf; }
tiresias() { jobs tiresias; }

recorded=""
for workload in "${workloads[@]}"; do
    "$workload"
done
[[ -z $failed ]]

#!/bin/bash
# A population as one job of Slurm, which goes on where it was when it is requeued or submitted again:
#
#     sbatch examples/slurm-population.sh config/run/slurm.toml runs/slurm
#
# The nodes are those that config/run/slurm.toml names. With --no-kill the others go on when one of them fails;
# shortly before the time is over the run is told to stop, and everything is kept.
#SBATCH --job-name=population
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --no-kill
#SBATCH --signal=B:TERM@60
set -euo pipefail

config="${1:?which configuration?}"
folder="${2:?in which folder?}"
if [[ -e $folder/config.toml ]]; then
    exec rota run --resume "$folder" --json
fi
exec rota run "$config" --out "$folder" --json

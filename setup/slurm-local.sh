#!/usr/bin/env bash
# A real Slurm of a few unequal nodes on this machine, for tests:
#
#     bash setup/slurm-local.sh start  [--folder DIR] [--nodes 4]
#     bash setup/slurm-local.sh status [--folder DIR]
#     bash setup/slurm-local.sh kill-node NAME [--folder DIR]      # as when its power fails (root only)
#     bash setup/slurm-local.sh start-node NAME [--folder DIR]     # and it is switched on again
#     bash setup/slurm-local.sh stop   [--folder DIR]
#
# Every node has four cores. The first half has Feature=fast and two GPUs that are none (/dev/null, /dev/zero), the
# other half has Feature=slow. All files are in one folder of the user's own, all sockets on loopback. Debian's slurm-wlm
# and munge are installed where they are missing, if this is root on a machine with apt-get.
set -euo pipefail

PATH="$PATH:/usr/sbin:/sbin"
folder="${TMPDIR:-/tmp}/rota-slurm-$(id -u)"
count=4
command="${1:-}"
shift || true
node=""

say() { echo "slurm-local: $*" >&2; }
fail() { say "$*" && exit 1; }
mistake() { say "$*" && exit 2; }
usage() { sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 2; }

read_arguments() {
    case "$command" in
        kill-node | start-node)
            (($#)) || usage
            node="$1"
            shift
            ;;
        start | stop | status) ;;
        *) usage ;;
    esac
    while (($#)); do
        case "$1" in
            --folder) folder="${2:-}" ;;
            --nodes) count="${2:-}" ;;
            *) usage ;;
        esac
        shift 2 || usage
    done
    [[ $count =~ ^([1-9]|[12][0-9]|3[0-2])$ ]] || mistake "--nodes is '$count'; give 1 to 32"
    [[ -z $node || $node =~ ^node[0-9]+$ ]] || mistake "'$node' is no node; the nodes are node1, node2 …"
    # slurm.conf cannot quote, and a path to a socket has 107 characters at most.
    [[ $folder =~ ^/[A-Za-z0-9._/-]+$ && ${#folder} -le 80 ]] ||
        mistake "--folder is '$folder'; give an absolute path of at most 80 letters, digits and ._-/"
}

# ---- what must be there

missing() {
    local program
    for program in munged slurmctld slurmd srun sbatch scontrol sinfo; do
        command -v "$program" > /dev/null || echo "$program"
    done
}

install_missing() {
    local absent output
    absent="$(missing | paste -sd ' ')"
    [[ -n $absent ]] || return 0
    [[ $EUID == 0 && -n $(command -v apt-get) ]] ||
        fail "missing: $absent. On Debian or Ubuntu, as root: apt-get install slurm-wlm munge"
    say "installing slurm-wlm and munge"
    export DEBIAN_FRONTEND=noninteractive
    output="$({ apt-get update && apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends \
        slurm-wlm munge; } 2>&1)" || { echo "$output" >&2 && fail "apt-get failed (above)"; }
    absent="$(missing | paste -sd ' ')"
    [[ -z $absent ]] || fail "slurm-wlm and munge are installed, but these are still missing: $absent"
}

make_folder() {
    mkdir -p "$folder"
    [[ -O $folder && ! -L $folder ]] || fail "$folder belongs to another user; give another --folder"
    chmod 700 "$folder"
    mkdir -p "$folder"/{pids,logs,state,spool}
    if [[ ! -s $folder/munge.key ]]; then
        (umask 077 && head -c 1024 /dev/urandom > "$folder/munge.key")
    fi
}

# ---- configuration

# A node listens on the address of its host's name. As root it has a name of its own, otherwise this machine's.
node_address() {
    local address=127.0.0.1
    if ((EUID != 0)); then address="$(getent ahostsv4 "$(hostname)" | awk 'NR == 1 { print $1 }')"; fi
    [[ $address == 127.* ]] || fail "'$(hostname)' must be on loopback: add '127.0.1.1 $(hostname)' to /etc/hosts"
    echo "$address"
}

is_taken() { (: < "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }

# The first block of ports in which nothing listens: control, node daemons, then srun's.
find_ports() {
    local base offset
    for base in 17000 18000 19000 20000 21000 22000; do
        for offset in 0 $(seq 11 $((10 + count))); do
            if is_taken $((base + offset)); then continue 2; fi
        done
        echo "$base" && return
    done
    fail "ports 17000 to 22044 are taken on loopback; stop the Slurm that has them"
}

write_configuration() {
    local base="$1" fast=$(((count + 1) / 2)) user number address
    user="$(id -un)"
    address="$(node_address)"
    cat > "$folder/slurm.conf" << END
ClusterName=mini
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
SlurmctldPort=$base
SlurmdPort=$((base + 1))
SrunPortRange=$((base + 100))-$((base + 600))
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$folder/munge.sock,cred_expire=5
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/state/slurmctld.pid
SlurmdPidFile=$folder/spool/%n.pid
SlurmctldLogFile=$folder/logs/slurmctld.log
SlurmdLogFile=$folder/logs/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/logs/completed.txt
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
ReturnToService=2
JobRequeue=1
KillWait=2
MessageTimeout=5
SlurmctldTimeout=10
SlurmdTimeout=5
InactiveLimit=0
GresTypes=gpu
END
    echo "AutoDetect=off" > "$folder/gres.conf"
    cp /etc/hosts "$folder/hosts"
    for number in $(seq "$count"); do
        local kind="Feature=slow"
        echo "127.0.0.1 node$number" >> "$folder/hosts"
        if ((number <= fast)); then
            kind="Feature=fast Gres=gpu:2"
            printf "NodeName=node$number Name=gpu File=%s\n" /dev/null /dev/zero >> "$folder/gres.conf"
        fi
        echo "NodeName=node$number NodeHostname=localhost NodeAddr=$address Port=$((base + 10 + number))" \
            "CPUs=4 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=4000 $kind" >> "$folder/slurm.conf"
    done
    echo "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP" >> "$folder/slurm.conf"
}

# ---- processes: what was started is known by its id and the moment at which it began

# Nothing for one that has ended, also if its exit code has not been asked for yet.
began() { sed -n 's/.*) \([^Z]\)/\1/p' "/proc/$1/stat" 2> /dev/null | cut -d ' ' -f 20; }

# Starts a command in a session of its own, so that Ctrl-C where this script was called is not for it.
launch() {
    local name="$1"
    shift
    setsid "$@" < /dev/null > "$folder/logs/$name.out" 2>&1 9>&- &
    echo "$! $(began "$!")" > "$folder/pids/$name"
}

pid_of() {
    local pid since
    read -r pid since 2> /dev/null < "$folder/pids/$1" || return 1
    [[ -n $since && $(began "$pid") == "$since" ]] && echo "$pid"
}

end() {
    local name="$1" signal="$2" pid turn
    if pid="$(pid_of "$name")"; then
        kill "-$signal" "$pid" 2> /dev/null || true
        for turn in $(seq 400); do
            pid_of "$name" > /dev/null || break
            if ((turn == 200)); then kill -KILL "$pid" 2> /dev/null || true; fi
            sleep 0.05
        done
    fi
    rm -f "$folder/pids/$name"
}

# As root a node has its own processes and host name, and all of them end with one signal.
launch_node() {
    if ((EUID == 0)); then
        # shellcheck disable=SC2016
        launch "$1" unshare --pid --uts --mount --fork --kill-child=KILL --mount-proc \
            bash -c 'hostname "$1" && mount --bind "$2/hosts" /etc/hosts && slurmd -D -N "$1" -f "$2/slurm.conf"; exit' \
            node "$1" "$folder"
    else
        launch "$1" slurmd -D -N "$1" -f "$folder/slurm.conf"
    fi
}

nodes() { sed -n 's/^NodeName=\(node[0-9]*\) .*/\1/p' "$folder/slurm.conf" 2> /dev/null; }
idle() { sinfo --noheader --Node --format='%N %T' 2> /dev/null | grep -c ' idle$' || true; }
is_up() { pid_of slurmctld > /dev/null && pid_of munged > /dev/null; }

until_true() {
    local turn
    for turn in $(seq 1200); do
        if "$@"; then return; fi
        sleep 0.1
    done
    return 1
}
nothing_runs() { [[ -z $(squeue --noheader) ]]; }
all_are_idle() { [[ $(idle) == "$count" ]]; }

# ---- commands

start() {
    install_missing
    if is_up; then
        say "is running already" && explain && return
    fi
    make_folder
    stop_processes
    exec 9< /tmp # until ours are taken, no other of these scripts looks for free ones
    flock --timeout 120 9 || true
    write_configuration "$(find_ports)"
    # Without --force it insists on a socket for all users; this one is for its owner.
    launch munged munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.sock" \
        --pid-file="$folder/munge.pid" --log-file="$folder/logs/munged.log" \
        --seed-file="$folder/munge.seed" --num-threads=2
    until_true test -S "$folder/munge.sock" || { stop_processes && fail "munged did not start: see $folder/logs"; }
    launch slurmctld slurmctld -D -c -f "$folder/slurm.conf"
    for node in $(nodes); do launch_node "$node"; done
    until_true all_are_idle || { stop_processes && fail "not all nodes came up in 2 minutes: see $folder/logs"; }
    exec 9>&-
    explain
}

explain() {
    sinfo --Node --format='%N %T %c %f %G' >&2
    say "to use it: export SLURM_CONF=$folder/slurm.conf"
    say "to end it: bash setup/slurm-local.sh stop --folder $folder"
}

stop_processes() {
    local name
    if ((EUID != 0)) && is_up; then # what runs on nodes without a namespace would outlive them
        squeue --noheader --format=%i | xargs --no-run-if-empty scancel || true
        until_true nothing_runs || true
    fi
    for name in $(nodes); do end "$name" KILL; done
    end slurmctld TERM
    end munged TERM
    rm -f "$folder/munge.sock" "$folder/munge.sock.lock"
}

status() {
    is_up || { say "is not running in $folder" && exit 1; }
    explain
}

kill_node() {
    ((EUID == 0)) || fail "only root can start nodes that end as a whole"
    pid_of "$node" > /dev/null || mistake "$node is not running in $folder"
    end "$node" KILL
}

start_node() {
    is_up || fail "is not running in $folder"
    nodes | grep -qx "$node" || mistake "there is no $node in $folder; there are: $(nodes | paste -sd ' ')"
    pid_of "$node" > /dev/null || launch_node "$node"
}

read_arguments "$@"
export SLURM_CONF="$folder/slurm.conf"
case "$command" in
    start) start ;;
    stop) stop_processes ;;
    status) status ;;
    kill-node) kill_node ;;
    start-node) start_node ;;
esac

"""What is damaged: small inputs of every kind, made by rota where it writes such, and who reads them."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from mutations import json_lines_changed, mutated

ROOT = Path(__file__).resolve().parents[1]
IN = "{in}"
"""In a command: the folder with what was damaged."""

Rota = Callable[..., None]
"""Runs a command, which must succeed."""


@dataclass(frozen=True)
class Subject:
    """A folder of inputs: which of its files are damaged, and the commands that read them."""

    name: str
    files: tuple[str, ...]
    """Patterns of names."""
    commands: tuple[str, ...]
    """One of them is run, in an empty folder of its own."""


TRACES = {
    "csv": (
        "plain.csv",
        "id,submit_s,gpus,duration_s,model,priority,kinds,speed_old\na,0,1,60,bert,0,,\nb,5.5,0.25,120,dqn,1,gpu,\n"
        "c,6,4,30,,,,\nd,7,2,300,vgg16,0,gpu|old,0.5\n",
    ),
    "muri": (
        "trace.csv",
        "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,"
        "resource_time_1,resource_time_2,priority\n0,1,0,100,dqn,128,49000,0,490,446,8,0,1\n"
        "1,8,2000,50,vgg16,16,10700,2000,214,82,75,66,0\n",
    ),
    "philly": (
        "philly.csv",
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
        "2017-10-09 06:13:03,2951.0,4,11804.0,6214e9\n",
    ),
    "azure": ("azure.csv", "job_id,submission_time,duration,num_gpu\nf60b,5010,1265,1\nfd9f,5016,2066,8\n"),
    "gavel": (
        "gavel.trace",
        "ResNet-18 (batch size 16)\tpython3 main.py\t--num_steps\t1\t1000\t0.000000\t1\n"
        "LM (batch size 5)\tpython3 lm.py\t--steps\t0\t600\t30.500000\t4\n",
    ),
    "pollux": (
        "pollux.csv",
        "name,time,application,num_replicas,batch_size\ncifar10-0,53,cifar10,6,600\ncifar10-1,54,cifar10,1,128\n",
    ),
    "helios": (
        "helios.csv",
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
        "11,uA,vcA,0,4,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:01:00,60,0\n"
        "12,uB,vcA,8,32,1,FAILED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 01:00:20,3600,10\n",
    ),
    "alibaba": (
        "alibaba.csv",
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
        "scheduled_time\npod-0,12000,16384,1,1000,,LS,Running,100,1100,200\n"
        "pod-1,6000,12288,1,250,,BE,Running,150,1150,150\n"
        "pod-2,88000,327680,8,1000,,Burstable,Failed,160,260,\n",
    ),
}
THROUGHPUTS = {
    "k80": {"('ResNet-18 (batch size 16)', 1)": {"null": 5.0, "('LM (batch size 5)', 1)": [2.0, 3.0]}},
    "v100": {
        "('ResNet-18 (batch size 16)', 1)": {"null": 20.0, "('LM (batch size 5)', 1)": [12.0, 0.0]},
        "('LM (batch size 5)', 1)": {"null": 50.0},
    },
}
APPLICATION = {
    "placements.csv": "placement,local_bsz,step_time,sync_time\n"
    "1,100,0.5,0.0\n1,200,0.9,0.0\n24,50,1.0,0.6\n",
    "scalability.csv": "num_nodes,num_replicas,local_bsz,step_time,sync_time\n6,24,100,4.0,3.0\n",
    "validation-128.csv": "progress,iteration,metric,grad_sqr,grad_var\n"
    "50.0,49,0.5,1.0,1.0\n100.0,99,0.7,1.0,1.0\n",
}
ADAPTATION = "scenario,action_1,left_1_s,action_2,left_2_s,total_s,accuracy\n" + "".join(
    f"{scenario},{a},{left},{b},{left / 2},40,0.{a}{b + 1}\n"
    for scenario, left in (("early", 30), ("late", 10))
    for a in range(2)
    for b in range(2)
)
CLUSTER = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,2,8,64,256\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,gpu\nn1,96000,786432,8,V100\n"
SCORES = {"CPU": {"here": {"core": 1, "score": 1410.0, "work": "x"}, "10.0.0.2": {"core": 4, "score": 900}}}

JOBS_TOML = """\
schedulers = ["srtf", "muri-l"]
placement = "consolidated"
checkpoint_every_s = 10.0
[workload]
trace = "plain.csv"
jobs = 4
time_scale = 1.0
[cluster]
groups = [{ count = 2, gpus = 4, kind = "gpu" }, { count = 1, gpus = 2, kind = "old", switch = 1 }]
cross_node = 1.5
cross_switch = 2.0
changes = [{ at_s = 5.0, node = 1, what = "leave" }, { at_s = 50.0, node = 1, what = "join" }]
[cluster.speeds.old]
default = 0.5
"""
SYNTHETIC_TOML = """\
schedulers = ["fifo", "themis", "tiresias", "antman"]
cost = "interval"
[workload.synthetic]
jobs = 12
[cluster]
nodes = 2
gpus_per_node = 4
switches = 1
[grid]
"cluster.nodes" = [8, 9]
"""
POPULATION_TOML = """\
allocations = ["fifo", "hrfs"]
evolution = "pbt"
seeds = 2
cluster = "two"
[population]
trials = 4
steps = 200
interval = 50
target = 0.99
curves = "curves"
checkpoint_mb = 1.0
[population.start]
lr = { low = 0.001, high = 0.3, log = true }
[options.pbt.space]
lr = { low = 0.0001, high = 1.0 }
[costs]
dispatch_s = 0.01
latency_s = 0.001
bandwidth_mb_s = 100.0
[noise]
sigma = 0.05
[clusters.two]
slots = [{ node = "a", speed = 2.0, device = "gpu" }, { node = "b", speed = 1.0, count = 2, switch = 1 }]
changes = [{ at_s = 0.1, node = "b", what = "leave" }, { at_s = 0.2, node = "b", what = "join" }]
slowdowns = [{ at_s = 0.1, node = "a", factor = 3.0 }]
"""
RUN_TOML = """\
allocation = "fifo"
evolution = "pbt"
backend = "local"
trial = "rota.execution.idle:idle"
[population]
trials = 3
steps = 20
interval = 5
[population.start]
lr = { low = 0.001, high = 0.3, log = true }
[options.pbt.space]
lr = { low = 0.0001, high = 1.0, log = true }
[training]
step_s = 0.0005
[costs]
latency_s = 0.001
[local]
slots = [{ count = 2 }]
"""
RUN_JOBS_TOML = """\
scheduler = "srtf"
backend = "local"
assignment_s = 0.02
job = "rota.execution.jobs.idle:idle_jobs"
[workload]
trace = "trace.csv"
[local]
slots = [{ count = 2 }]
[kinds.a]
compute_s = 0.001
[kinds.b]
fetch_s = 0.001
compute_s = 0.001
"""
RUN_JOBS = """\
id,submit_s,gpus,model,iterations,duration_s,priority
x,0,1,a,60,1,0
y,0.01,1,b,50,1,1
z,0.02,1,a,40,1,0
"""
LEARN_TOML = """\
recordings = ["trees"]
seeds = [0]
episodes = 64
stages = ["early", "late"]
[method]
episodes_per_update = 32
"""
PLACE_TOML = "[placement]\nupdates = 2\ntests = 2\nseed = 0\n"

TRACE = "trace describe {in}/FILE --format NAME"
PLOT = "plot {in} --out plots --quick --figure FIGURE"
JOB_FIGURES, POPULATION_FIGURES = (
    ("jct", "comparison", "load", "gantt"),
    ("ratio", "accuracy", "idle", "gantt"),
)
SLOTS = "--set cluster.nodes=2 --set cluster.gpus_per_node=8"


def subjects() -> Iterator[Subject]:
    """All of them; the folder of each has its name."""
    for name, (file, _) in TRACES.items():
        read = TRACE.replace("FILE", file).replace("NAME", name)
        also = {"gavel": ("simulation_throughputs.json",), "pollux": ("cifar10/*.csv",)}.get(name, ())
        run = f"simulate --trace {IN}/{file} --set workload.format={name} {SLOTS} --schedulers"
        yield Subject(
            f"trace-{name}",
            (file, *also),
            (
                f"trace describe {IN}/{file}", read, f"{read} --gpus 8 --figure f.png", f"{read} --json",
                f"{run} srtf,muri-l --out made", f"{run} antman",
                f"trace convert {IN}/{file} --format {name} --out c.csv",
            ),
        )  # fmt: skip
    for file in ("cluster.csv", "nodes.csv"):
        command = f"simulate --trace {IN}/plain.csv --set cluster.file={IN}/{file} --schedulers fifo"
        yield Subject(f"machines-{file[:-4]}", (file,), (command,))
    simulate = (
        f"simulate {IN}/it.toml",
        f"simulate {IN}/it.toml --out made",
        f"simulate {IN}/it.toml --json",
    )
    for name in ("jobs", "synthetic", "population"):
        yield Subject(f"simulate-{name}", ("it.toml",), simulate)
    for name in (
        "local",
        "jobs",
        "shipped-local",
        "shipped-jobs",
        "shipped-adaptive",
        "shipped-slurm",
        "shipped-ray",
    ):
        yield Subject(f"run-{name}", ("*.toml", "*.csv", "*.json"), (f"run {IN}/it.toml --out made",))
    for name in ("adapt-digits", "cartpole-a2c", "digits", "transformer"):
        yield Subject(f"train-{name}", ("it.toml",), (f"train {IN}/it.toml --out made",))
    yield Subject("record", ("it.toml",), (f"record {IN}/it.toml --out made --quiet",))
    yield Subject("learn", ("it.toml",), (f"learn {IN}/it.toml --out made --quiet",))
    yield Subject("learn-place", ("it.toml",), (f"learn {IN}/it.toml --out made --quiet",))
    yield from _recordings()
    yield from _agents()
    yield from _runs()


def _recordings() -> Iterator[Subject]:
    look = (f"recordings describe {IN}", f"recordings describe {IN} --figure f.png")
    learn = f"learn --recordings {IN} --pooled --out made --quiet"
    adapt = (f"recordings adaptation {IN}", f"recordings adaptation {IN} --figure f.png")
    yield Subject("trees", ("*/recording.json", "*/points.csv"), (*look, *adapt, learn))
    grown = ("*/recording.json", "*/nodes.csv", "*/structures.csv")
    yield Subject("growth-trees", grown, (*look, f"recordings growth {IN} --figure growth.png"))
    curves = f"simulate --population 3 --steps 100 --set population.curves={IN}/curves --slots 1,2"
    yield Subject("curves", ("*/recording.json", "*/curves.csv"), (*look, curves))
    profiles = f"simulate --trace {IN}/trace.csv {SLOTS} --set workload.profiles={IN}/took --schedulers srtf"
    yield Subject("profiles", ("*/recording.json", "*/profile.csv", "trace.csv"), (*look, profiles))
    yield Subject(
        "import-adaptation",
        ("it.csv",),
        (f"recordings import-adaptation {IN}/it.csv --model m --out made",),
    )
    yield Subject("import-gavel", ("it.json",), (f"recordings import-gavel {IN}/it.json --out made",))
    yield Subject("import-pollux", ("cifar10/*.csv",), (f"recordings import-pollux {IN}/cifar10 --out made",))


def _agents() -> Iterator[Subject]:
    yield Subject(
        "agent",
        ("agent/*",),
        (
            f"evaluate --agent {IN}/agent --recordings {IN}/trees",
            f"evaluate --agent {IN}/agent --recordings {IN}/trees --figures figures --out made",
            f"report {IN}/agent",
            f"learn --recordings {IN}/trees --pooled --set start={IN}/agent --out made --quiet",
        ),
    )
    yield Subject(
        "evaluation", ("results/evaluate/*/evaluation.json",), (f"report {IN}", "cd {in} plot --quick")
    )
    yield Subject(
        "placement-agent",
        ("results/learn/place/*",),
        (
            f"simulate --population 3 --steps 100 --slots 1,2 --set allocations=['learned']"
            f" --set options.learned.agent={IN}/results/learn/place",
            f"report {IN}",
            "cd {in} plot --quick",
            f"evaluate --agent {IN}/results/learn/place --quiet --workers 1",
        ),
    )
    yield Subject("against-tune", ("results/compare-tune/compare.json",), ("cd {in} plot --quick",))


def _runs() -> Iterator[Subject]:
    look = (f"report {IN}", f"compare {IN}/a {IN}/b", f"compare {IN}/b {IN}/a --json --figure f.png")
    plots = tuple(PLOT.replace("FIGURE", name) for name in JOB_FIGURES)
    again = f"simulate {IN}/asked.toml --out {IN}/a"
    yield Subject("run-of-jobs", ("a/*/*",), (*look, *plots, f"{plots[0]} --chrome", again))
    plots = tuple(PLOT.replace("FIGURE", name) for name in POPULATION_FIGURES)
    again = f"simulate {IN}/asked.toml --out {IN}/a --replace"
    files = ("a/*/*.toml", "a/*/summary.json", "a/*/seed*/timeline.jsonl", "a/*/seed*/*-accuracy.json")
    yield Subject("run-of-population", files, (*look, *plots, again))
    status = (f"status {IN}/a", f"status {IN}/a --json", f"run --resume {IN}/a")
    real = ("a/config.toml", "a/result.json", "a/runs/0/journal.sqlite", "a/runs/0/journal.sqlite")
    again_alone = f"run --retrain-best {IN}/a"
    files = (*real, "a/summary.json", "a/seed0/timeline.jsonl")
    yield Subject("real-population", files, (*status, again_alone, *look, plots[0], plots[3]))
    plots = tuple(PLOT.replace("FIGURE", name) for name in JOB_FIGURES)
    made = f"recordings from-run {IN}/a --out made"
    yield Subject(
        "real-jobs",
        (*real, "a/metrics.json", "a/jobs.csv", "a/timeline.npz"),
        (*status, made, *look, plots[0]),
    )


def prepare(ground: Path, rota: Rota) -> None:
    """Make the folder of every subject."""
    _write_inputs(ground)
    trees = ROOT / "results" / "recordings" / "trees"
    for folder in ("trees", "agent/trees", "learn/trees"):
        for tree in ("convnet2-cifar10-16-early-seed0", "convnet2-cifar10-16-late-seed0"):
            shutil.copytree(trees / tree, ground / folder / tree)
    for name in ("lr=0.001-seed0", "lr=0.0023-seed0"):
        tree = ROOT / "results/recordings/growth/convnet2-digits" / name
        shutil.copytree(tree, ground / "growth-trees" / name)
    shutil.copytree(ROOT / "results/recordings/profiles/profiles", ground / "profiles" / "profiles")
    _small_curves(ground)
    rota("learn", "--recordings", ground / "trees", "--pooled", "--set", "episodes=64",
         "--out", ground / "agent/agent", "--quiet", "--workers", 1)  # fmt: skip
    place = ground / "placement-agent/results/learn/place"
    (place / "place.toml").parent.mkdir(parents=True)
    rota("learn", ground / "learn-place/it.toml", "--out", place, "--quiet", "--workers", 1)
    rota("evaluate", "--agent", ground / "agent/agent", "--recordings", ground / "trees", "--out",
         ground / "evaluation/results/evaluate/it")  # fmt: skip
    _simulated(ground, rota)
    _real(ground, rota)


def _write_inputs(ground: Path) -> None:
    def write(name: str, text: str) -> None:
        (ground / name).parent.mkdir(parents=True, exist_ok=True)
        (ground / name).write_text(text)

    for name, (file, text) in TRACES.items():
        write(f"trace-{name}/{file}", text)
    write("trace-gavel/simulation_throughputs.json", json.dumps(THROUGHPUTS))
    write("import-gavel/it.json", json.dumps(THROUGHPUTS))
    for file, text in APPLICATION.items():
        write(f"trace-pollux/cifar10/{file}", text)
        write(f"import-pollux/cifar10/{file}", text)
    for folder in ("machines-cluster", "machines-nodes", "simulate-jobs", "run-of-jobs"):
        write(f"{folder}/plain.csv", TRACES["csv"][1])
    write("profiles/trace.csv", RUN_JOBS)
    write("machines-cluster/cluster.csv", CLUSTER)
    write("machines-nodes/nodes.csv", NODES)
    write("import-adaptation/it.csv", ADAPTATION)
    write("simulate-jobs/it.toml", JOBS_TOML)
    write("simulate-synthetic/it.toml", SYNTHETIC_TOML)
    write("simulate-population/it.toml", POPULATION_TOML)
    write("run-of-jobs/asked.toml", JOBS_TOML)
    write("run-of-population/asked.toml", POPULATION_TOML)
    write("run-local/it.toml", RUN_TOML)
    for folder in ("run-jobs", "real-jobs"):
        write(f"{folder}/it.toml", RUN_JOBS_TOML)
        write(f"{folder}/trace.csv", RUN_JOBS)
    write("real-population/it.toml", RUN_TOML)
    for name in ("local", "jobs", "adaptive", "slurm", "ray"):
        text = (ROOT / "config" / "run" / f"{name}.toml").read_text()
        write(f"run-shipped-{name}/it.toml", text.replace("[ray]", '[ray]\nscores = "scores.json"'))
        for trace in ("jobs.csv", "adaptive.csv"):
            if trace in text:
                write(f"run-shipped-{name}/{trace}", (ROOT / "config" / "run" / trace).read_text())
    write("run-shipped-ray/scores.json", json.dumps(SCORES))
    for name in ("adapt-digits", "cartpole-a2c", "digits", "transformer"):
        write(f"train-{name}/it.toml", (ROOT / "config" / "train" / f"{name}.toml").read_text())
    write("record/it.toml", (ROOT / "config" / "record" / "quick.toml").read_text())
    write("learn/it.toml", LEARN_TOML)
    write("learn-place/it.toml", PLACE_TOML)
    write("against-tune/results/compare-tune/compare.json", json.dumps(_sides()))


def _sides() -> dict[str, Any]:
    parts = [[0.0, 1.0, 10, 0.5, 1, 0], [1.5, 2.0, 10, 0.7, 1, None], [0.1, 1.0, 10, 0.4, 2, 1]]
    run = {"slots": 2, "parts": parts, "finals": [0.7, 0.4], "process_s": 3.0, "cpu_s": 2.0}
    runs = [{"side": side, "seed": seed, **run} for side in ("rota", "Ray Tune") for seed in (0, 1)]
    return {"format": 1, "about": "two trials", "command": "bash scripts/compare-tune.sh", "runs": runs}


def _small_curves(ground: Path) -> None:
    """The first settings of those that are shipped."""
    from dataclasses import replace
    from itertools import islice

    from rota.recordings.curve import read_curves, write_curves

    whole = read_curves(ROOT / "results/recordings/curves/convnet2-fashion-mnist")
    some = dict(islice(whole.settings.items(), 6))
    write_curves(ground / "curves" / "curves", replace(whole, settings=some, planned=tuple(some), failed={}))
    for folder in ("simulate-population", "run-of-population"):
        shutil.copytree(ground / "curves" / "curves", ground / folder / "curves")


def _simulated(ground: Path, rota: Rota) -> None:
    for kind in ("jobs", "population"):
        folder = ground / f"run-of-{kind}"
        rota("simulate", folder / "asked.toml", "--out", folder / "a")
        shutil.copytree(folder / "a", folder / "b")


def _real(ground: Path, rota: Rota) -> None:
    """Runs of trials and jobs that only wait, and simulations of them."""
    for kind in ("population", "jobs"):
        folder = ground / f"real-{kind}"
        rota("run", folder / "it.toml", "--out", folder / "a", "--every", 1e9)
        for more in folder.glob("a/runs/*/journal.sqlite.lock"):
            more.unlink()
    population, jobs = ground / "real-population", ground / "real-jobs"
    rota("recordings", "from-run", jobs / "a", "--out", jobs / "took")
    rota("simulate", "--trace", jobs / "trace.csv", "--set", f"workload.profiles={jobs / 'took'}",
         "--nodes", 1, "--gpus-per-node", 2, "--schedulers", "srtf", "--out", jobs / "b")  # fmt: skip
    shutil.move(jobs / "took", ground / "profiles" / "took")
    rota("simulate", "--population", 3, "--steps", 20, "--interval", 5, "--slots", "1,1",
         "--allocations", "fifo", "--out", population / "b")  # fmt: skip


def damage(random: Random, folder: Path, patterns: Sequence[str]) -> Path | None:
    """Damage one of the files in a folder; which. What others say of it (checksums) is mostly put right."""
    files = [file for pattern in patterns for file in sorted(folder.glob(pattern)) if file.is_file()]
    if not files:
        return None
    file = random.choice(files)
    if file.suffix == ".sqlite" and random.random() < 0.75:
        _change_journal(random, file)
        return file
    content = mutated(random, file)
    file.write_bytes(content)
    if random.random() < 0.8:
        _seal(file, content)
    return file


def _seal(file: Path, content: bytes) -> None:
    """Make the facts next to a file say that it is the right one, if they can be read."""
    sha256 = hashlib.sha256(content).hexdigest()
    for facts_file in (file.with_name("recording.json"), file.with_name("agent.json")):
        if facts_file.exists() and facts_file != file:
            facts = json.loads(facts_file.read_text())
            if "files" in facts:
                facts["files"][file.name] |= {"sha256": sha256, "rows": max(0, content.count(b"\n") - 1)}
            elif file.suffix == ".npz":
                facts["sha256"] = sha256
            facts_file.write_text(json.dumps(facts))


def _change_journal(random: Random, file: Path) -> None:
    """Write it anew, with one entry changed, doubled, or taken away."""
    from rota.execution.journal import Journal, read_journal

    entries = [(entry.at_s, entry.kind, entry.body) for entry in read_journal(file)]
    at = random.randrange(len(entries))
    at_s, kind, body = entries[at]
    match random.randrange(5):
        case 0:
            del entries[at]
        case 1:
            entries.insert(at, entries[random.randrange(len(entries))])
        case _:
            changed = json.loads(json_lines_changed(random, json.dumps(body).encode()))
            entries[at] = (at_s, kind, changed)
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()
    with Journal(file) as journal:
        journal.append_all(entries)
    for lock in file.parent.glob("*.lock"):
        lock.unlink()

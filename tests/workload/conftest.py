"""A few hand-written rows in each published format."""

import json
from pathlib import Path

import pytest

MURI = """\
job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,resource_time_1,resource_time_2,priority
0,1,0,100,dqn,128,49000,0,490,446,8,0,1
1,8,2000,50,vgg16,16,10700,2000,214,82,75,66,0
"""

PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-09 06:13:03,2951.0,4,11804.0,6214e9
"""

AZURE = """\
job_id,submission_time,duration,num_gpu
f60b,5010,1265,1
fd9f,5016,2066,8
"""

GAVEL = (
    "ResNet-18 (batch size 16)\tpython3 main.py --name 'a \"b\"'\t--num_steps\t1\t1000\t0.000000\t1\n"
    "LM (batch size 5)\tpython3 lm.py\t--steps\t0\t600\t30.500000\t4\n"
)

THROUGHPUTS = {
    "k80": {
        "('ResNet-18 (batch size 16)', 1)": {"null": 5.0, "('LM (batch size 5)', 1)": [2.0, 3.0]},
        "('LM (batch size 5)', 1)": {"null": 0.0},
        "('LM (batch size 5)', 2)": {"null": 6.0},
    },
    "p100": {"('ResNet-18 (batch size 16)', 1)": {"null": 30.0}},
    "v100": {
        "('ResNet-18 (batch size 16)', 1)": {"null": 20.0, "('LM (batch size 5)', 1)": [12.0, 0.0]},
        "('LM (batch size 5)', 1)": {"null": 50.0},
        "('LM (batch size 5)', 2)": {"null": 24.0},
    },
}

POLLUX = """\
name,time,application,num_replicas,batch_size
cifar10-0,53,cifar10,6,600
cifar10-1,54,cifar10,1,128
"""

PLACEMENTS = """\
placement,local_bsz,step_time,sync_time
1,100,0.5,0.0
1,200,0.9,0.0
24,50,1.0,0.6
24,150,2.0,0.4
33,100,9.0,9.0
"""

SCALABILITY = """\
num_nodes,num_replicas,local_bsz,step_time,sync_time
6,24,100,4.0,3.0
12,24,100,8.0,7.0
"""

VALIDATION = """\
progress,iteration,metric,grad_sqr,grad_var
50.0,49,0.5,1.0,1.0
100.0,99,0.7,1.0,1.0
"""

HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
11,uA,vcA,0,4,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:01:00,60,0
12,uB,vcA,8,32,1,FAILED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 01:00:20,3600,10
13,uB,vcA,1,4,1,CANCELLED,2020-04-02 00:00:10,2020-04-02 00:00:10,2020-04-02 00:00:10,0,0
"""

ALIBABA = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-0,12000,16384,1,1000,,LS,Running,100,1100,200
pod-1,6000,12288,1,250,V100M16|V100M32,BE,Running,150,1150,150
pod-2,88000,327680,8,1000,,Burstable,Failed,160,260,
pod-3,8000,30517,0,0,,BE,Running,170,270,170
pod-4,8000,30517,1,500,,Guaranteed,Running,180,,180
"""

PLAIN = """\
id,submit_s,gpus,duration_s
a,0,1,60
b,5.5,0.25,120
"""

FILES = {
    "csv": ("plain.csv", PLAIN),
    "muri": ("trace.csv", MURI),
    "philly": ("philly.csv", PHILLY),
    "azure": ("cluster02.csv", AZURE),
    "gavel": ("1.trace", GAVEL),
    "pollux": ("workload-1.csv", POLLUX),
    "helios": ("cluster_log.csv", HELIOS),
    "alibaba": ("openb_pod_list_default.csv", ALIBABA),
}


@pytest.fixture
def sample(tmp_path):
    """Gives a function that writes a format's sample, or another text, and what belongs to it."""

    def write(name: str, text: str | None = None) -> Path:
        file, rows = FILES[name]
        path = tmp_path / file
        path.write_text(rows if text is None else text, encoding="utf-8")
        if name == "gavel":
            (tmp_path / "simulation_throughputs.json").write_text(json.dumps(THROUGHPUTS))
        if name == "pollux":
            folder = tmp_path / "cifar10"
            folder.mkdir(exist_ok=True)
            (folder / "placements.csv").write_text(PLACEMENTS)
            (folder / "scalability.csv").write_text(SCALABILITY)
            (folder / "validation-128.csv").write_text(VALIDATION)
            (folder / "validation-512.csv").write_text(VALIDATION.replace("99", "39"))
        return path

    return write


@pytest.fixture
def rows():
    """The text of a format's sample."""
    return {name: text for name, (_, text) in FILES.items()}

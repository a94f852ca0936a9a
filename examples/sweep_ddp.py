"""A sweep whose trials are two processes each, which train one network together (torch.distributed, gloo).

    python examples/sweep_ddp.py                                                    # on this machine
    sbatch --nodes=2 --ntasks-per-node=2 --wrap "python examples/sweep_ddp.py"      # on Slurm, two at once

Each process sees its own half of the data; gradients are averaged at every step. The process of rank 0 logs.
"""

import os
import sys
from pathlib import Path

import rota.sweeps as ss


def train(cfg):
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    rank = int(os.environ.get("RANK") or os.environ["SLURM_PROCID"])
    ranks = int(os.environ.get("WORLD_SIZE") or os.environ["SLURM_NTASKS"])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    # They find each other through a file of their own: trials run side by side.
    own = os.environ.get("MASTER_PORT") or f"{os.environ['SLURM_JOB_ID']}.{os.environ['SLURM_STEP_ID']}"
    meeting = Path(cfg["meetings"]) / f"{cfg['rate']}-{own}"
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    network = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimiser = torch.optim.SGD(network.parameters(), lr=cfg["rate"])
    inputs = torch.randn(64, 4)[rank::ranks]
    targets = inputs.sum(dim=1, keepdim=True)
    for epoch in range(cfg["epochs"]):
        loss = torch.nn.functional.mse_loss(network(inputs), targets)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        mean = loss.detach() / ranks
        dist.all_reduce(mean)
        ss.log({"loss": mean.item(), "ranks": ranks}, epoch)
    dist.destroy_process_group()


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "slurm-sweeps").absolute()
    (folder / "meetings").mkdir(parents=True, exist_ok=True)
    sweep = ss.Experiment(
        train,
        {"rate": ss.Grid([0.3, 0.01]), "epochs": 20, "meetings": str(folder / "meetings")},
        name="ddp",
        local_dir=folder,
        asha=ss.ASHA("loss", "min"),
        slurm_cfg=ss.SlurmCfg(ntasks=2),
        overwrite=True,
    )
    print(sweep.run().best_trial())

"""Stages of models whose stages nobody published: borrowed from the nearest of the eight measured ones.

| published as                            | stand-in | because                                        |
|-----------------------------------------|----------|------------------------------------------------|
| Transformer, bert                       | bert     | an encoder of text: hardly any loading         |
| LM                                      | gpt2     | a language model: hardly any loading           |
| deepspeech2                             | gpt2     | a recurrent network over long sequences        |
| ResNet-18, ResNet-50, cifar10, imagenet | resnet18 | a residual network fed with decoded images     |
| CycleGAN, yolov3                        | vgg19    | heavy convolutions, images loaded beside them  |
| A3C                                     | a2c      | the same family of reinforcement learning      |
| Recommendation, ncf                     | dqn      | a small network that waits for its data        |
"""

from rota.workload.profiles import profile

STAND_INS = {
    "Transformer": "bert",
    "bert": "bert",
    "LM": "gpt2",
    "deepspeech2": "gpt2",
    "ResNet-18": "resnet18",
    "ResNet-50": "resnet18",
    "cifar10": "resnet18",
    "imagenet": "resnet18",
    "CycleGAN": "vgg19",
    "yolov3": "vgg19",
    "A3C": "a2c",
    "Recommendation": "dqn",
    "ncf": "dqn",
}

Stages = tuple[float, float, float]


def borrowed_stages_s(model: str, gpus: float, iteration_s: float) -> Stages:
    """Load, compute, synchronise in the proportions of the stand-in; all compute if nothing stands in."""
    name = STAND_INS.get(model)
    if name is None:
        return (0.0, iteration_s, 0.0)
    measured = profile(name, gpus)
    load, compute, sync = (iteration_s * ms / measured.iteration_ms for ms in measured.stages_ms)
    return (load, compute, sync)


def split_stages_s(model: str, gpus: float, iteration_s: float, sync_s: float) -> Stages:
    """The synchronise stage as measured; the rest shared by load and compute as in the stand-in."""
    load, compute, _ = borrowed_stages_s(model, gpus, iteration_s)
    rest_s = max(iteration_s - sync_s, 0.0)
    return (rest_s * load / (load + compute), rest_s * compute / (load + compute), sync_s)

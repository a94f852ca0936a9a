"""Which step of PyTorch becomes what in Keras. To support another one, add its line here."""

import operator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from rota.training.keras import layers, operations
from rota.training.keras.operations import Step

STEPS: dict[Step, tuple[Any, ...]] = {
    layers.convolution: (nn.Conv2d,),
    layers.linear: (nn.Linear,),
    layers.batch_normalisation: (nn.BatchNorm1d, nn.BatchNorm2d),
    layers.layer_normalisation: (nn.LayerNorm,),
    layers.embedding: (nn.Embedding,),
    operations.same: (nn.Identity, "contiguous", "clone", "detach"),
    operations.dropout: (nn.Dropout, functional.dropout),
    operations.activation("relu"): (nn.ReLU, functional.relu, torch.relu, "relu", "relu_"),
    operations.activation("relu6"): (nn.ReLU6, functional.relu6),
    operations.activation("tanh"): (nn.Tanh, functional.tanh, torch.tanh, "tanh"),
    operations.activation("sigmoid"): (nn.Sigmoid, functional.sigmoid, torch.sigmoid, "sigmoid"),
    operations.activation("silu"): (nn.SiLU, functional.silu),
    operations.gelu: (nn.GELU, functional.gelu),
    operations.leaky_relu: (nn.LeakyReLU, functional.leaky_relu),
    operations.softmax: (nn.Softmax, functional.softmax, torch.softmax, "softmax"),
    operations.log_softmax: (nn.LogSoftmax, functional.log_softmax, torch.log_softmax, "log_softmax"),
    operations.max_pool: (nn.MaxPool2d, functional.max_pool2d, torch.max_pool2d),
    operations.average_pool: (nn.AvgPool2d, functional.avg_pool2d),
    operations.adaptive_average_pool: (nn.AdaptiveAvgPool2d, functional.adaptive_avg_pool2d),
    operations.arithmetic("add"): (operator.add, operator.iadd, torch.add, "add", "add_"),
    operations.arithmetic("subtract"): (operator.sub, operator.isub, torch.sub, "sub"),
    operations.arithmetic("multiply"): (operator.mul, operator.imul, torch.mul, "mul"),
    operations.arithmetic("divide"): (operator.truediv, torch.div, "div"),
    operations.matmul: (operator.matmul, torch.matmul, "matmul"),
    operations.mean: (torch.mean, "mean"),
    operations.reshape: (
        *(nn.Flatten, nn.Unflatten, torch.flatten, torch.reshape, torch.squeeze, torch.unsqueeze),
        *("flatten", "unflatten", "reshape", "view", "squeeze", "unsqueeze"),
    ),
    operations.transpose: (torch.transpose, "transpose"),
    operations.permute: (torch.permute, "permute"),
    operations.concatenate: (torch.cat, torch.concat),
    operations.split: (torch.chunk, torch.split, "chunk", "split"),
    operations.item: (operator.getitem,),
    operations.narrow: (torch.narrow, "narrow"),
    operations.attention: (functional.scaled_dot_product_attention,),
}

TABLE = {known: step for step, targets in STEPS.items() for known in targets}
"""By the kind of the module, the function, or the name of the method."""

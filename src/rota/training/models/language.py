"""A small causal transformer: from each symbol on, what comes next."""

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from rota.training.models.shapes import vector

WIDTH, HEADS, LAYERS = 64, 4, 3


def transformer(inputs: tuple[int, ...], outputs: int) -> "Transformer":
    context = vector(inputs, "texts of shape (symbols,)")
    network = Transformer(context, outputs)
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    return network


class Transformer(nn.Module):
    """Texts (batch, up to `context` symbols) to logits of the next symbol (batch, symbols, vocabulary)."""

    def __init__(self, context: int, vocabulary: int) -> None:
        super().__init__()
        self.symbols = nn.Embedding(vocabulary, WIDTH)
        self.positions = nn.Parameter(torch.randn(context, WIDTH) * 0.02)
        self.layers = nn.Sequential(*(TransformerLayer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)

    def forward(self, text: Tensor) -> Tensor:
        positions = torch.narrow(self.positions, 0, 0, text.size(1))
        logits: Tensor = self.head(self.norm(self.layers(self.symbols(text) + positions)))
        return logits


class TransformerLayer(nn.Module):
    """Attention to what came before, then a feed-forward part; each reads a normal copy and adds to it."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(WIDTH), Attention())
        self.feedforward = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x)
        after: Tensor = x + self.feedforward(x)
        return after


class Attention(nn.Module):
    """Each symbol looks at itself and at those before it, in several heads."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.project(x).unflatten(2, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        seen = scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        output: Tensor = self.output(seen.transpose(1, 2).flatten(2))
        return output

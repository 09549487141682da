"""Exports one decoder layer of a 32B LLaMA, which no package has to be fetched for, with seeded weights in FLOAT16.

    python3 tools/zoo/llama_layer.py TOKENS PAST OUT.onnx

TOKENS new positions behind PAST in a cache. RMSNorm, rotary embedding, grouped queries, a causal mask, SwiGLU; no biases.
Takes 4 GB of memory, and OUT.onnx 1 GB: docs/peers.md has the times of both sizes.
"""

import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, KV_HEADS, HEAD, HIDDEN = 5120, 64, 8, 128, 25600


class Linear(nn.Module):
    """Without bias; the weight is cast where it is used, as an exporter of half-precision networks has it."""

    def __init__(self, inputs, outputs):
        super().__init__()
        weight = torch.empty(outputs, inputs).normal_(0, 0.02).half()
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, x):
        return F.linear(x, self.weight.float())


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


class Layer(nn.Module):
    def __init__(self, tokens, past):
        super().__init__()
        self.tokens, self.positions = tokens, past + tokens
        self.input_norm, self.mlp_norm = RmsNorm(), RmsNorm()
        self.q_proj, self.o_proj = Linear(WIDTH, HEADS * HEAD), Linear(HEADS * HEAD, WIDTH)
        self.k_proj, self.v_proj = (Linear(WIDTH, KV_HEADS * HEAD) for _ in range(2))
        self.gate_proj, self.up_proj = (Linear(WIDTH, HIDDEN) for _ in range(2))
        self.down_proj = Linear(HIDDEN, WIDTH)
        frequencies = 10000 ** (-torch.arange(0, HEAD, 2).float() / HEAD)
        angles = torch.arange(past, self.positions).float()[:, None] * torch.cat((frequencies, frequencies))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("mask", torch.ones(tokens, self.positions).triu(1 + past).bool())

    def heads(self, y, count):
        return y.view(1, self.tokens, count, HEAD).transpose(1, 2)

    def rotated(self, y):
        return y * self.cos + rotate_half(y) * self.sin

    def repeated(self, y):
        groups = HEADS // KV_HEADS
        return y[:, :, None].expand(1, KV_HEADS, groups, self.positions, HEAD).reshape(1, HEADS, self.positions, HEAD)

    def forward(self, x, *cache):
        y = self.input_norm(x)
        q = self.rotated(self.heads(self.q_proj(y), HEADS))
        new = self.rotated(self.heads(self.k_proj(y), KV_HEADS)), self.heads(self.v_proj(y), KV_HEADS)
        k, v = (torch.cat(both, 2) for both in zip(cache, new)) if cache else new
        scores = q @ self.repeated(k).transpose(-1, -2) / math.sqrt(HEAD)
        if self.tokens > 1:
            scores = scores.masked_fill(self.mask, float("-inf"))
        mixed = (scores.softmax(-1) @ self.repeated(v)).transpose(1, 2).reshape(1, self.tokens, HEADS * HEAD)
        x = x + self.o_proj(mixed)
        y = self.mlp_norm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y)), k, v


def main():
    tokens, past, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.manual_seed(1)
    inputs = [torch.randn(1, tokens, WIDTH)]
    if past > 0:
        inputs += [torch.randn(1, KV_HEADS, past, HEAD) for _ in range(2)]
    with torch.no_grad():
        torch.onnx.export(Layer(tokens, past), tuple(inputs), out, opset_version=16, do_constant_folding=False,
                          input_names=["x", "past_k", "past_v"][:len(inputs)])


if __name__ == "__main__":
    main()

"""Products of matrices, attention."""

import math

from torch import nn

from fuselage_fx.calls import Call, converts, require


@converts("torch.matmul", "operator.matmul", "matmul", "torch.mm", "mm", "torch.bmm", "bmm")
def matmul(input, other):
    return Call("matmul", [input, other])


@converts("torch.nn.functional.scaled_dot_product_attention")
def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    require(dropout_p == 0, "dropout_p", dropout_p, "0.0")
    return Call("scaled_dot_product_attention", [query, key, value, attn_mask], is_causal=bool(is_causal),
                scale=1 / math.sqrt(query.shape[-1]) if scale is None else float(scale))


@converts("torch.addmm", "addmm")
def addmm(input, mat1, mat2, beta=1, alpha=1):
    return Call("addmm", [input, mat1, mat2], beta=float(beta), alpha=float(alpha))


@converts("torch.nn.functional.linear")
def linear(input, weight, bias=None):
    return Call("linear", [input, weight, bias])


converts(nn.Linear)(lambda module, input: Call("linear", [input], {"weight": module.weight, "bias": module.bias}))

"""Small models in many spellings, exported to this folder by tools/export_fx.py:

    bazel build //tools:ops_json
    /usr/bin/python3 frontend/fx/examples/examples.py frontend/fx/examples

writes <name>.ir, <name>.safetensors, and <name>.expected.safetensors, which holds inputs and PyTorch's outputs. Weights
are those of an integer hash, the same on every machine and with every PyTorch.
"""

import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[3] / "tools"))
import export_fx  # noqa: E402


def hashed(shape, seed):
    """Multiples of 2^-10 in [-1, 1)."""
    index = torch.arange(torch.Size(shape).numel(), dtype=torch.int64) + seed * 1000003
    bits = (index * 2654435761) % 2**32
    bits = ((bits ^ (bits >> 15)) * 2246822519) % 2**32
    return ((bits >> 21).to(torch.float32) / 2**10 - 1).reshape(shape)


def filled(model):
    """The model in eval mode with hashed values."""
    tensors = [item for item in (*model.named_parameters(), *model.named_buffers())
               if item[1].dtype == torch.float32]
    for seed, (name, tensor) in enumerate(tensors):
        values = hashed(tensor.shape, seed)
        if name.endswith("running_var"):
            values = values / 2 + 1
        elif tensor.dim() == 1 and name.endswith("weight"):
            values = values / 4 + 1  # The factor of a norm.
        elif tensor.dim() > 1:
            values = values * 2 / max(1, tensor[0].numel())**0.5
        tensor.data.copy_(values)
    return model.eval()


class Mlp(nn.Module):

    def __init__(self):
        super().__init__()
        self.fc1, self.relu, self.fc2 = nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)

    def forward(self, x):
        return self.fc2(self.relu(self.fc1(x)))


class LinearRelu(nn.Module):
    """Two pairs of linear and relu, and a linear."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(16, 24), nn.Linear(24, 24), nn.Linear(24, 4)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Patterns(nn.Module):
    """matmul, add, relu, twice."""

    def __init__(self):
        super().__init__()
        self.w1, self.b1 = nn.Parameter(torch.zeros(16, 24)), nn.Parameter(torch.zeros(24))
        self.w2, self.b2 = nn.Parameter(torch.zeros(24, 8)), nn.Parameter(torch.zeros(8))

    def forward(self, x):
        x = torch.relu(torch.matmul(x, self.w1) + self.b1)
        x = torch.relu(torch.matmul(x, self.w2) + self.b2)
        return torch.sigmoid(x)


class ConvBn(nn.Module):
    """Two pairs of convolution and batch norm."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        return self.pool(torch.relu(self.bn2(self.conv2(x))))


class Cnn(nn.Module):
    """Dropout, adaptive pooling, and view(x.size(0), -1) before the classifier."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding="same"), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=2), nn.Hardswish(), nn.AdaptiveAvgPool2d((2, 2)))
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(64, 10)

    def forward(self, x):
        x = self.features(x)
        x = x.view(x.size(0), -1)
        x = F.dropout(self.dropout(x), 0.5, self.training)
        return F.softmax(self.classifier(x), dim=1)


class ResNetBlock(nn.Module):
    """A residual block (He et al., CVPR 2016); its subclasses spell the same computation in other ways."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x
        return self.relu(out)


class ResNetBlockFunctional(ResNetBlock):

    def forward(self, x):

        def norm(x, bn):
            return F.batch_norm(x, bn.running_mean, bn.running_var, bn.weight, bn.bias, training=False, eps=bn.eps)

        out = F.relu(norm(F.conv2d(x, self.conv1.weight, padding=1), self.bn1))
        out = norm(F.conv2d(input=out, weight=self.conv2.weight, bias=None, stride=(1, 1), padding="same"), self.bn2)
        return F.relu(input=out + x, inplace=True)


class ResNetBlockTorch(ResNetBlock):

    def forward(self, x):
        out = torch.relu(self.bn1(torch.conv2d(x, self.conv1.weight, None, 1, 1)))
        return torch.relu(torch.add(self.bn2(self.conv2(out)), x))


class ResNetBlockMethods(ResNetBlock):

    def forward(self, x):
        out = self.bn1(self.conv1(x)).relu()
        return self.bn2(self.conv2(out)).add(x).relu()


class ResNetBlockInPlace(ResNetBlock):

    def forward(self, x):
        out = self.bn1(self.conv1(x)).relu_()
        return torch.relu_(self.bn2(self.conv2(out)).add_(x))


class Mobile(nn.Module):
    """An inverted residual with squeeze and excitation (Howard et al., "Searching for MobileNetV3", ICCV 2019)."""

    def __init__(self):
        super().__init__()
        self.expand, self.bn1 = nn.Conv2d(6, 12, 1, bias=False), nn.BatchNorm2d(12, eps=1e-3)
        self.depthwise, self.bn2 = nn.Conv2d(12, 12, 5, 1, 2, groups=12, bias=False), nn.BatchNorm2d(12)
        self.squeeze, self.excite = nn.Conv2d(12, 4, 1), nn.Conv2d(4, 12, 1)
        self.project, self.bn3 = nn.Conv2d(12, 6, 1, bias=False), nn.BatchNorm2d(6)
        self.act = nn.Hardswish(inplace=True)

    def forward(self, x):
        y = self.act(self.bn1(self.expand(x)))
        y = self.act(self.bn2(self.depthwise(y)))
        scale = F.relu(self.squeeze(F.adaptive_avg_pool2d(y, 1)), inplace=True)
        y = F.hardsigmoid(self.excite(scale)) * y
        return x + self.bn3(self.project(y))


class Transformer(nn.Module):
    """An encoder layer (Vaswani et al., "Attention is all you need", 2017), norms first."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.out = nn.Linear(16, 48, bias=False), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 16))

    def forward(self, x):
        n, length, width = x.shape[0], x.shape[1], x.size(-1)
        qkv = self.qkv(self.norm1(x)).view(n, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        scores = qkv[0] @ qkv[1].transpose(-2, -1) / 2
        attended = (F.softmax(scores, dim=-1) @ qkv[2]).transpose(1, 2).reshape(n, length, width)
        x = x + self.out(attended)
        return x + self.mlp(self.norm2(x))


class Activations(nn.Module):
    """Each activation as function, method and module; shared modules; numbers as operands."""

    def __init__(self):
        super().__init__()
        self.act = nn.ModuleDict({
            "relu": nn.ReLU(), "relu6": nn.ReLU6(), "sigmoid": nn.Sigmoid(), "tanh": nn.Tanh(), "silu": nn.SiLU(),
            "hardswish": nn.Hardswish(), "hardsigmoid": nn.Hardsigmoid(), "gelu": nn.GELU(), "softmax": nn.Softmax(1),
            "gelu_tanh": nn.GELU("tanh"), "leaky": nn.LeakyReLU(0.2), "hardtanh": nn.Hardtanh(-2.0, 2.0)})

    def forward(self, x):
        modules = sum(self.act[name](x) for name in self.act) + self.act["relu"](x * 2)
        functions = (F.relu6(x) + torch.sigmoid(x) + torch.tanh(x) + F.silu(x) + F.hardswish(x) + F.hardsigmoid(x) +
                     F.gelu(x) + F.gelu(x, approximate="tanh") + F.leaky_relu(x, 0.1) + torch.clamp(x, min=-0.5) +
                     torch.clip(x, max=0.25) + F.hardtanh(x) + torch.softmax(x, 0))
        methods = x.relu() + x.sigmoid() + x.tanh() + x.clamp(-1, 0.5) + x.softmax(-1)
        return modules, torch.add(functions, methods, alpha=0.5), 1 - x / 3, 2 * (x - 0.1)


class Shapes(nn.Module):
    """What moves elements, and sizes that the program computes."""

    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten(2)

    def forward(self, x):
        n, c, h, w = x.size(0), x.shape[1], x.shape[2], x.shape[3]
        tokens = x.view(n, c, h * w).permute(0, 2, 1)
        heads = tokens.reshape(n, h * w, 2, c // 2).transpose(1, 2).contiguous()
        parts = x.chunk(2, dim=1)
        pieces = torch.split(x, [1, 3], dim=1)
        joined = torch.cat([parts[1], parts[0], pieces[-1]], dim=1)
        return (tokens, heads, joined, self.flatten(x), torch.flatten(x), x.flatten(1, 2), x[:, 1:3, ::2],
                x[:, -1, None], x[..., 0], x.unsqueeze(1).squeeze(1), torch.mean(x, (2, 3)),
                x.mean(1, keepdim=True), x.mean(), F.pad(x, (1, 2, 0, 1), value=0.5), x.view(-1, w),
                F.pad(x, (1, 1, 2, 0), mode="reflect"), x.half().float(), x.to(torch.float64), x.detach().clone(),
                x[0, 0].T, torch.squeeze(x[:1], 0), x.squeeze(1))


class Layers(nn.Module):
    """Layers with weights, pools and norms, as modules and as functions; a tied weight, a weight that is computed."""

    def __init__(self):
        super().__init__()
        self.conv1d = nn.Conv1d(4, 6, 4, padding="same", dilation=2)
        self.conv3d = nn.Conv3d(2, 3, 2, bias=False)
        self.up = nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1, output_padding=1)
        self.bn = nn.BatchNorm1d(6, affine=False)
        self.norm = nn.LayerNorm(12)
        self.plain_norm = nn.LayerNorm((6, 12), eps=1e-3, elementwise_affine=False)
        self.max = nn.MaxPool2d(3, 2, 1, ceil_mode=True)
        self.avg = nn.AvgPool2d((3, 2), stride=2, padding=1)
        self.adaptive = nn.AdaptiveAvgPool2d((3, None))
        self.first = nn.Linear(12, 12)
        self.second = nn.Linear(12, 12)
        self.second.weight = self.first.weight
        self.identity = nn.Identity()
        self.up3d, self.avg3d = nn.ConvTranspose3d(1, 2, (1, 2, 2), stride=2), nn.AvgPool3d(2)
        self.even = nn.Conv2d(3, 2, (2, 4), padding="same", bias=False)
        self.register_buffer("matrix", torch.zeros(12, 5))

    def forward(self, x):
        line = self.bn(self.conv1d(x))
        line = self.plain_norm(self.norm(line))
        line = F.layer_norm(line, line.shape[2:], self.norm.weight, self.norm.bias, 1e-6)
        line = self.second(self.identity(self.first(line)))
        line = F.linear(line, self.second.weight.t())
        rows = line.mean(1)
        plane = x.view(x.size(0), 1, 4, 12)
        planes = torch.cat([plane, plane * 2, plane + 1], 1)
        volume = planes.unsqueeze(1)
        return (line, rows @ self.matrix, torch.addmm(rows.mean(0), rows, self.first.weight, beta=0.5, alpha=2),
                torch.mm(rows, self.matrix), torch.bmm(line, line.transpose(1, 2)), self.up(planes), self.max(planes),
                self.avg(planes), self.adaptive(planes), F.adaptive_avg_pool2d(planes, 1), F.avg_pool2d(planes, 2),
                F.max_pool2d(planes, 2, stride=1, dilation=2), F.avg_pool2d(planes, 3, 2, 1, True, False),
                self.conv3d(planes[:, :2].reshape(-1, 2, 2, 2, 12)), F.conv_transpose2d(planes, self.up.weight),
                F.max_pool1d(x, 3), F.avg_pool1d(x, 2), F.adaptive_avg_pool1d(x, 5), self.up3d(volume),
                self.avg3d(volume), F.max_pool3d(volume, (3, 2, 2), 1), F.adaptive_avg_pool3d(volume, (2, 4, 3)),
                self.even(planes), F.conv_transpose1d(x, self.conv1d.weight.reshape(4, 6, 4), stride=3))


class Functions(nn.Module):
    """What is exported by the schema of the op that it is an alias of."""

    def forward(self, x):
        positive = x.abs() + 0.5
        y = torch.cumsum(x, 1)
        return (torch.sin(x), x.cos(), torch.tan(x), torch.asin(x), torch.acos(x), torch.atan(x), torch.sinh(x), x.cosh(),
                torch.asinh(x), torch.acosh(positive + 1), torch.atanh(x * 0.5), x.exp(), torch.log(positive),
                positive.sqrt(), torch.reciprocal(positive), torch.erf(x), torch.floor(x * 4), torch.ceil(x * 4),
                torch.round(x * 4), torch.sign(x), torch.neg(x), torch.isnan(x), x > 0, torch.eq(x, y), x.ge(y),
                torch.maximum(x, y), torch.minimum(x, y), x ** 2, torch.pow(positive, x), torch.fmod(y, positive),
                torch.remainder(y, positive), F.elu(x, 0.5), F.selu(x), F.celu(x, alpha=2), F.softplus(x), F.softsign(x),
                F.mish(x), F.threshold(x, 0.25, -3), F.log_softmax(x, dim=1), x.cumsum(dim=-1), torch.tril(x),
                torch.triu(x, diagonal=1), x.argmax(1), torch.argmin(x, 0, keepdim=True), torch.topk(x, 2)[0],
                F.group_norm(x, 3), torch.logical_and(x > 0, y > 0))


class Selections(nn.Module):
    """Reductions, what is picked by positions and conditions, resampling, and modules whose op is a function's too."""

    def __init__(self):
        super().__init__()
        self.act = nn.ModuleList([nn.ELU(0.5), nn.CELU(2.0), nn.SELU(), nn.Mish(), nn.Softplus(), nn.Softsign(),
                                  nn.LogSoftmax(1), nn.PReLU(), nn.PReLU(4)])
        self.groups, self.instances = nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True)
        self.embedding = nn.Embedding(7, 3)
        self.up, self.up_sharp = nn.Upsample(scale_factor=2), nn.Upsample((5, 7), mode="bilinear", align_corners=True)
        self.register_buffer("order", torch.tensor([2, 0, 1]))

    def forward(self, x):
        values, index = torch.topk(x, 2, dim=-1)
        grid = torch.tanh(x.reshape(x.shape[0], 4, -1, 2))
        return (sum(act(x) for act in self.act), self.groups(x), self.instances(x), torch.sum(x, (2, 3)), x.sum(),
                x.amax(1, keepdim=True), torch.amin(x, -1), torch.prod(x, 1), torch.logsumexp(x, (1, 2)),
                torch.gather(x, -1, index), torch.index_select(x, 1, self.order), self.embedding(index),
                F.embedding(self.order, self.embedding.weight), x.scatter(3, index, values * 2),
                torch.where(x > 0, x, x * 2), x.masked_fill(x > 0.25, 0.5), x[:, :1].expand(-1, 3, -1, -1), self.up(x),
                self.up_sharp(x), F.interpolate(x, scale_factor=1.7, mode="bilinear"),
                F.interpolate(x, (7, 5), mode="bicubic"), F.interpolate(x, (3, 9), mode="nearest-exact"),
                F.grid_sample(x, grid, align_corners=False),
                F.grid_sample(x, grid, "nearest", "border", align_corners=True))


EXAMPLES = {
    "mlp": (Mlp, [(2, 64)]),
    "linear_relu": (LinearRelu, [(2, 16)]),
    "patterns": (Patterns, [(4, 16)]),
    "conv_bn": (ConvBn, [(1, 3, 8, 8)]),
    "cnn": (Cnn, [(2, 3, 16, 16)]),
    "resnet_block_modules": (ResNetBlock, [(1, 8, 6, 6)]),
    "resnet_block_functional": (ResNetBlockFunctional, [(1, 8, 6, 6)]),
    "resnet_block_torch": (ResNetBlockTorch, [(1, 8, 6, 6)]),
    "resnet_block_methods": (ResNetBlockMethods, [(1, 8, 6, 6)]),
    "resnet_block_in_place": (ResNetBlockInPlace, [(1, 8, 6, 6)]),
    "mobile": (Mobile, [(1, 6, 9, 9)]),
    "transformer": (Transformer, [(2, 5, 16)]),
    "activations": (Activations, [(3, 5)]),
    "shapes": (Shapes, [(2, 4, 4, 6)]),
    "layers": (Layers, [(2, 4, 12)]),
    "functions": (Functions, [(4, 6)]),
    "selections": (Selections, [(2, 4, 4, 6)]),
}


def write(name, folder):
    """Files of one example; returns the tensors that <name>.expected.safetensors holds."""
    build, shapes = EXAMPLES[name]
    model = filled(build())
    inputs = [hashed(shape, 100 + i) for i, shape in enumerate(shapes)]
    graph_name = "resnet_block" if name.startswith("resnet_block") else name  # Spellings of one graph.
    export_fx.export(model, inputs, folder / name, graph_name)
    with torch.no_grad():
        outputs = model(*[x.clone() for x in inputs])
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    expected = {f"input.{i}": x for i, x in enumerate(inputs)}
    expected.update((f"output.{i}", y.contiguous()) for i, y in enumerate(outputs))
    export_fx.write_safetensors(folder / f"{name}.expected.safetensors", expected)
    return expected


if __name__ == "__main__":
    for example in EXAMPLES:
        write(example, pathlib.Path(sys.argv[1]))

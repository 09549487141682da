"""The zoo's networks: how each is built, with seeded weights, and what it is fed.

A network is a row of TABLE: its name, the package that defines it, a function without arguments that returns the module, and
the shapes of its inputs, batch included. Weights are random, so depth and width are the real ones where that is quick, and
small configurations of the same code elsewhere. sample() draws others.
"""

import dataclasses
import random
import typing

import torch
import torch.nn.functional as F
from torch import nn

IMAGE = ((1, 3, 64, 64),)
TOKENS = ((1, 32),)


@dataclasses.dataclass
class Network:
    name: str
    package: str  # "torch", "torchvision", "timm" or "transformers".
    build: typing.Callable[[], nn.Module]
    shapes: tuple = IMAGE  # Empty: shapes_of(the module).
    vocabulary: int = 0  # Inputs are tokens below it; 0: floats of a normal distribution.
    small: bool = False  # Among those that a test runs.
    only_fp32: bool = False


class Output(nn.Module):
    """One tensor, or a tuple of them, of a module that returns a dictionary or an object."""

    def __init__(self, module, pick):
        super().__init__()
        self.module, self.pick = module, pick

    def forward(self, *inputs):
        return self.pick(self.module(*inputs))


# --- Our own, of families that no package here defines.


def conv_block(inputs, outputs, kernel=3, stride=1, act=nn.SiLU):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs), act())


class UNet(nn.Module):
    """Ronneberger et al., 2015, with batch norms; the decoder is upsampled by ConvTranspose or bilinearly."""

    def __init__(self, transposed):
        super().__init__()
        widths = (16, 32, 64, 128)
        pair = lambda i, o: nn.Sequential(conv_block(i, o, act=nn.ReLU), conv_block(o, o, act=nn.ReLU))
        self.down = nn.ModuleList(pair(i, o) for i, o in zip((3,) + widths, widths))
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(o, i, 2, 2) if transposed else nn.Sequential(
                nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), nn.Conv2d(o, i, 1))
            for i, o in zip(widths, widths[1:]))
        self.merge = nn.ModuleList(pair(2 * w, w) for w in widths[:-1])
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        skips = []
        for i, down in enumerate(self.down):
            x = down(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        for i in reversed(range(len(self.up))):
            x = self.merge[i](torch.cat([self.up[i](x), skips[i]], 1))
        return self.head(x)


class Generator(nn.Sequential):
    """Of images, shaped as CycleGAN's (Zhu et al., 2017), with batch norms: no stride of the decoder divides its kernel."""

    def __init__(self):
        def up(inputs, outputs, kernel):
            conv = nn.ConvTranspose2d(inputs, outputs, kernel, 2, kernel // 2, output_padding=1)
            return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())

        down = (conv_block(i, o, k, s, nn.ReLU) for i, o, k, s in ((3, 16, 7, 1), (16, 32, 3, 2), (32, 64, 3, 2)))
        super().__init__(*down, up(64, 32, 5), up(32, 16, 3), nn.Conv2d(16, 3, 7, padding=3), nn.Tanh())


class TimedBlock(nn.Module):
    """Two convolutions behind group norms, between which a time is added to each channel."""

    def __init__(self, inputs, outputs, times):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(times, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class PixelAttention(nn.Module):
    def __init__(self, channels, heads=4):
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(8, channels)
        self.qkv, self.out = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(n, 3, self.heads, c // self.heads, h * w).unbind(1)
        weights = (q.transpose(2, 3) @ k * q.shape[2] ** -0.5).softmax(-1)
        return x + self.out((v @ weights.transpose(2, 3)).reshape(x.shape))


class Denoiser(nn.Module):
    """The shape of a diffusion model's U-Net (Ho et al., "Denoising Diffusion Probabilistic Models", 2020)."""

    def __init__(self, widths=(32, 64, 128), times=64):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(times, times), nn.SiLU(), nn.Linear(times, times), nn.SiLU())
        self.stem = nn.Conv2d(3, widths[0], 3, padding=1)
        self.down = nn.ModuleList(TimedBlock(i, o, times) for i, o in zip((widths[0],) + widths, widths))
        self.shrink = nn.ModuleList(nn.Conv2d(w, w, 3, 2, 1) for w in widths[:-1])
        self.middle, self.attention = TimedBlock(widths[-1], widths[-1], times), PixelAttention(widths[-1])
        self.up = nn.ModuleList(TimedBlock(2 * o, i, times) for i, o in zip((widths[0],) + widths, widths))
        self.head = nn.Sequential(nn.GroupNorm(8, widths[0]), nn.SiLU(), nn.Conv2d(widths[0], 3, 3, padding=1))

    def forward(self, x, time):
        time, x = self.time(time), self.stem(x)
        skips = []
        for i, down in enumerate(self.down):
            x = down(x if i == 0 else self.shrink[i - 1](x), time)
            skips.append(x)
        x = self.middle(self.attention(x), time)
        for i in reversed(range(len(self.up))):
            x = self.up[i](torch.cat([x, skips[i]], 1), time)
            x = F.interpolate(x, scale_factor=2.0, mode="nearest") if i > 0 else x
        return self.head(x)


class C2f(nn.Module):
    """Splits the channels, runs bottlenecks on one half after the other, and joins all of them (YOLOv8)."""

    def __init__(self, channels, depth):
        super().__init__()
        half = channels // 2
        self.first = conv_block(channels, channels, 1)
        self.blocks = nn.ModuleList(nn.Sequential(conv_block(half, half), conv_block(half, half)) for _ in range(depth))
        self.last = conv_block((2 + depth) * half, channels, 1)

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Sppf(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first, self.last = conv_block(channels, channels // 2, 1), conv_block(2 * channels, channels, 1)

    def forward(self, x):
        x = self.first(x)
        y = F.max_pool2d(x, 5, 1, 2)
        z = F.max_pool2d(y, 5, 1, 2)
        return self.last(torch.cat([x, y, z, F.max_pool2d(z, 5, 1, 2)], 1))


class Yolo(nn.Module):
    """The shape of a YOLOv8: SiLU, C2f, SPPF, an upsampling neck, a head whose boxes are expectations (DFL)."""

    BINS = 16

    def __init__(self, classes=8):
        super().__init__()
        self.stem = nn.Sequential(conv_block(3, 16, 3, 2), conv_block(16, 32, 3, 2), C2f(32, 1))
        self.deep = nn.Sequential(conv_block(32, 64, 3, 2), C2f(64, 2), Sppf(64))
        self.neck = nn.Sequential(conv_block(96, 32, 1), C2f(32, 1))
        self.boxes = nn.ModuleList(nn.Conv2d(c, 4 * self.BINS, 1) for c in (32, 64))
        self.classes = nn.ModuleList(nn.Conv2d(c, classes, 1) for c in (32, 64))
        self.register_buffer("bins", torch.arange(self.BINS, dtype=torch.float).view(1, -1, 1, 1))

    def forward(self, x):
        fine = self.stem(x)
        deep = self.deep(fine)
        fine = self.neck(torch.cat([fine, F.interpolate(deep, scale_factor=2.0, mode="nearest")], 1))
        features = (fine, deep)
        boxes = torch.cat([head(f).flatten(2) for head, f in zip(self.boxes, features)], 2)
        scores = torch.cat([head(f).flatten(2) for head, f in zip(self.classes, features)], 2).sigmoid()
        batch, _, anchors = boxes.shape
        chances = boxes.view(batch, 4, self.BINS, anchors).transpose(1, 2).softmax(1)
        return torch.cat([(chances * self.bins).sum(1), scores], 1)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(24, 32, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class VolumeUNet(nn.Module):
    """Of medical images, shaped as nnU-Net's (Isensee et al., 2021): instance norms, leaky ReLUs, strides in the encoder. With
    overlapping kernels the decoder is MONAI's."""

    def __init__(self, overlapping, widths=(8, 16, 32)):
        super().__init__()
        def block(inputs, outputs, stride=1):
            return nn.Sequential(nn.Conv3d(inputs, outputs, 3, stride, 1, bias=False),
                                 nn.InstanceNorm3d(outputs, affine=True), nn.LeakyReLU(0.01))

        def up(inputs, outputs):
            return nn.ConvTranspose3d(inputs, outputs, 3, 2, 1, 1) if overlapping else nn.ConvTranspose3d(inputs, outputs, 2, 2)

        pair = lambda i, o, stride: nn.Sequential(block(i, o, stride), block(o, o))
        self.down = nn.ModuleList(pair(i, o, 2 if i > 1 else 1) for i, o in zip((1,) + widths, widths))
        self.up = nn.ModuleList(up(o, i) for i, o in zip(widths, widths[1:]))
        self.merge = nn.ModuleList(pair(2 * w, w, 1) for w in widths[:-1])
        self.head = nn.Conv3d(widths[0], 3, 1)

    def forward(self, x):
        skips = []
        for down in self.down:
            x = down(x)
            skips.append(x)
        for i in reversed(range(len(self.up))):
            x = self.merge[i](torch.cat([self.up[i](x), skips[i]], 1))
        return self.head(x)


class SeparatedBlock(nn.Module):
    """Of X3D (Feichtenhofer, 2020): a depthwise convolution over frames, gates, a residual."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        wide = 9 * outputs // 4
        norm = nn.BatchNorm3d
        self.expand = nn.Sequential(
            nn.Conv3d(inputs, wide, 1, bias=False), norm(wide), nn.ReLU(),
            nn.Conv3d(wide, wide, 3, (1, stride, stride), 1, groups=wide, bias=False), norm(wide))
        self.gate = nn.Sequential(nn.AdaptiveAvgPool3d(1), nn.Conv3d(wide, 8, 1), nn.ReLU(), nn.Conv3d(8, wide, 1), nn.Sigmoid())
        self.project = nn.Sequential(nn.SiLU(), nn.Conv3d(wide, outputs, 1, bias=False), norm(outputs))
        self.skip = nn.Sequential(nn.Conv3d(inputs, outputs, 1, (1, stride, stride), bias=False), norm(outputs))

    def forward(self, x):
        y = self.expand(x)
        return F.relu(self.project(y * self.gate(y)) + self.skip(x))


class Separated(nn.Sequential):
    def __init__(self, classes=10):
        super().__init__(
            nn.Conv3d(3, 24, (1, 3, 3), (1, 2, 2), (0, 1, 1), bias=False),
            nn.Conv3d(24, 24, (5, 1, 1), 1, (2, 0, 0), groups=24, bias=False), nn.BatchNorm3d(24), nn.ReLU(),
            SeparatedBlock(24, 24, 2), SeparatedBlock(24, 48, 2), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(48, classes))


# --- The table.


def vision(name, **options):
    def build():
        import torchvision.models
        return getattr(torchvision.models, name)(weights=None, **options)

    return build


def video(name):
    def build():
        import torchvision.models.video as models
        return getattr(models, name)(weights=None)

    return build


def segmentation(name):
    def build():
        import torchvision.models.segmentation as models
        return Output(getattr(models, name)(weights=None, weights_backbone=None, num_classes=5), lambda y: y["out"])

    return build


def pyramid():
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
    return Output(resnet_fpn_backbone("resnet18", weights=None), lambda y: tuple(y.values()))


def timm(name):
    def build():
        import timm as models
        return models.create_model(name, pretrained=False)

    return build


def timm_with_layer_scales(name, scale):
    """Layer scales begin with 1e-5, from where training takes them: so small, they would leave nothing of their layers."""

    def build():
        module = timm(name)()
        for parameter, value in module.named_parameters():
            if "gamma" in parameter:
                value.data.fill_(scale)
        return module

    return build


def transformer(model, config, pick=lambda y: y[0], **options):
    def build():
        import transformers
        return Output(getattr(transformers, model)(getattr(transformers, config)(return_dict=False, **options)), pick)

    return build


def detr():
    import transformers
    backbone = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 128], depths=[1, 1, 1, 1],
                                         layer_type="basic", out_features=["stage4"])
    config = transformers.DetrConfig(
        use_timm_backbone=False, backbone_config=backbone, d_model=64, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, num_queries=20,
        return_dict=False)
    return Output(transformers.DetrModel(config), lambda y: y[0])


def whisper_encoder():
    import transformers
    config = transformers.WhisperConfig(
        return_dict=False, d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=128,
        decoder_layers=1, decoder_attention_heads=4, decoder_ffn_dim=64, vocab_size=100, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1, max_source_positions=50)
    return Output(transformers.WhisperModel(config).get_encoder(), lambda y: y[0])


SMALL_TEXT = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100)
LARGE_IMAGE = ((1, 3, 224, 224),)
FRAMES = ((1, 3, 8, 64, 64),)
VOLUME = ((1, 1, 16, 32, 32),)

TABLE = [
    Network("alexnet", "torchvision", vision("alexnet"), LARGE_IMAGE),
    Network("vgg11_bn", "torchvision", vision("vgg11_bn"), LARGE_IMAGE),
    Network("resnet18", "torchvision", vision("resnet18"), small=True),
    Network("resnet50", "torchvision", vision("resnet50")),
    Network("resnext50_32x4d", "torchvision", vision("resnext50_32x4d")),
    Network("wide_resnet50_2", "torchvision", vision("wide_resnet50_2")),
    Network("densenet121", "torchvision", vision("densenet121")),
    Network("googlenet", "torchvision", vision("googlenet", aux_logits=False, init_weights=False)),
    Network("inception_v3", "torchvision", vision("inception_v3", aux_logits=False, init_weights=False), ((1, 3, 96, 96),)),
    Network("squeezenet1_1", "torchvision", vision("squeezenet1_1"), small=True),
    Network("mobilenet_v2", "torchvision", vision("mobilenet_v2"), small=True),
    Network("mobilenet_v3_small", "torchvision", vision("mobilenet_v3_small"), small=True),
    Network("mobilenet_v3_large", "torchvision", vision("mobilenet_v3_large")),
    Network("mnasnet0_5", "torchvision", vision("mnasnet0_5")),
    Network("shufflenet_v2_x0_5", "torchvision", vision("shufflenet_v2_x0_5"), small=True),
    Network("efficientnet_b0", "torchvision", vision("efficientnet_b0")),
    Network("efficientnet_v2_s", "torchvision", vision("efficientnet_v2_s")),
    Network("regnet_y_400mf", "torchvision", vision("regnet_y_400mf")),
    Network("convnext_tiny", "torchvision", vision("convnext_tiny")),
    Network("vit_b_16", "torchvision", vision("vit_b_16", image_size=64)),
    Network("swin_t", "torchvision", vision("swin_t"), LARGE_IMAGE),
    Network("swin_v2_t", "torchvision", vision("swin_v2_t"), ((1, 3, 256, 256),)),
    Network("maxvit_t", "torchvision", vision("maxvit_t"), LARGE_IMAGE),
    Network("fcn_resnet50", "torchvision", segmentation("fcn_resnet50")),
    Network("deeplabv3_mobilenet_v3_large", "torchvision", segmentation("deeplabv3_mobilenet_v3_large")),
    Network("lraspp_mobilenet_v3_large", "torchvision", segmentation("lraspp_mobilenet_v3_large")),
    Network("resnet18_fpn", "torchvision", pyramid),
    Network("r3d_18", "torchvision", video("r3d_18"), FRAMES),
    Network("mc3_18", "torchvision", video("mc3_18"), FRAMES),
    Network("r2plus1d_18", "torchvision", video("r2plus1d_18"), FRAMES),
    Network("s3d", "torchvision", video("s3d"), ((1, 3, 16, 224, 224),)),
    Network("volume_unet", "torch", lambda: VolumeUNet(False), VOLUME, small=True),
    Network("volume_unet_overlapping", "torch", lambda: VolumeUNet(True), VOLUME, small=True),
    Network("separated_video", "torch", Separated, ((1, 3, 4, 64, 64),), small=True),
    Network("unet_transposed", "torch", lambda: UNet(True), small=True),
    Network("unet_bilinear", "torch", lambda: UNet(False), small=True),
    Network("generator", "torch", Generator, small=True),
    Network("yolo_shaped", "torch", Yolo, small=True),
    Network("denoiser", "torch", Denoiser, ((1, 3, 32, 32), (1, 64)), small=True),
    Network("lstm", "torch", Lstm, ((1, 12, 24),), small=True),
    Network("mixer_s16_224", "timm", timm("mixer_s16_224"), LARGE_IMAGE),
    Network("levit_128s", "timm", timm("levit_128s"), LARGE_IMAGE),
    Network("ghostnet_100", "timm", timm("ghostnet_100")),
    Network("repvgg_a2", "timm", timm("repvgg_a2")),
    Network("res2net50_26w_4s", "timm", timm("res2net50_26w_4s")),
    Network("resnest14d", "timm", timm("resnest14d")),
    Network("skresnet18", "timm", timm("skresnet18")),
    Network("mobilevit_s", "timm", timm("mobilevit_s"), ((1, 3, 128, 128),)),
    Network("efficientformer_l1", "timm", timm("efficientformer_l1"), LARGE_IMAGE),
    Network("hrnet_w18_small", "timm", timm("hrnet_w18_small")),
    Network("pvt_v2_b0", "timm", timm("pvt_v2_b0")),
    Network("twins_svt_small", "timm", timm("twins_svt_small"), LARGE_IMAGE),
    Network("xcit_nano_12_p16_224", "timm", timm("xcit_nano_12_p16_224"), LARGE_IMAGE),
    Network("coatnet_0_rw_224", "timm", timm("coatnet_0_rw_224"), LARGE_IMAGE),
    Network("convnext_atto", "timm", timm("convnext_atto")),
    Network("poolformer_s12", "timm", timm("poolformer_s12")),
    Network("mobilevitv2_050", "timm", timm("mobilevitv2_050")),
    Network("coat_lite_mini", "timm", timm("coat_lite_mini"), LARGE_IMAGE),
    Network("volo_d1_224", "timm", timm("volo_d1_224"), LARGE_IMAGE),
    Network("cait_xxs24_224", "timm", timm_with_layer_scales("cait_xxs24_224", 0.5), LARGE_IMAGE),
    Network("regnetz_b16", "timm", timm("regnetz_b16")),
    Network("dla46x_c", "timm", timm("dla46x_c")),
    Network("bert", "transformers", transformer("BertModel", "BertConfig", **SMALL_TEXT), TOKENS, 100),
    Network("gpt2", "transformers",
            transformer("GPT2LMHeadModel", "GPT2Config", n_embd=64, n_layer=2, n_head=4, vocab_size=100, use_cache=False),
            TOKENS, 100),
    Network("opt", "transformers",
            transformer("OPTModel", "OPTConfig", hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                        ffn_dim=128, word_embed_proj_dim=64, vocab_size=100), TOKENS, 100),
    Network("bloom", "transformers",
            transformer("BloomModel", "BloomConfig", hidden_size=64, n_layer=2, n_head=4, vocab_size=100), TOKENS, 100),
    Network("gptj", "transformers",
            transformer("GPTJModel", "GPTJConfig", n_embd=64, n_layer=2, n_head=4, rotary_dim=8, vocab_size=100),
            TOKENS, 100),
    Network("deberta_v2", "transformers",
            transformer("DebertaV2Model", "DebertaV2Config", **SMALL_TEXT, relative_attention=True,
                        position_biased_input=False, pos_att_type=["p2c", "c2p"], share_att_key=True,
                        norm_rel_ebd="layer_norm", position_buckets=16), TOKENS, 100),
    Network("convbert", "transformers",
            transformer("ConvBertModel", "ConvBertConfig", **SMALL_TEXT, embedding_size=64), TOKENS, 100),
    Network("t5_encoder", "transformers",
            transformer("T5EncoderModel", "T5Config", d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
                        vocab_size=100), TOKENS, 100),
    Network("whisper_encoder", "transformers", whisper_encoder, ((1, 80, 100),)),
    Network("wav2vec2", "transformers",
            transformer("Wav2Vec2Model", "Wav2Vec2Config", **SMALL_TEXT, conv_dim=[64] * 7, num_conv_pos_embeddings=16,
                        num_conv_pos_embedding_groups=4), ((1, 8000),)),
    Network("detr", "transformers", detr, ((1, 3, 128, 128),)),
    Network("segformer", "transformers",
            transformer("SegformerForSemanticSegmentation", "SegformerConfig", depths=[1, 1, 1, 1],
                        hidden_sizes=[16, 32, 64, 64], num_attention_heads=[1, 2, 4, 4],
                        decoder_hidden_size=32, num_labels=5)),
]


# --- Networks that nobody chose.


def sample(seed):
    """timm's networks without those of TABLE, in a random order that the seed gives."""
    import timm as models
    names = sorted(set(models.list_models()) - {network.name for network in TABLE})
    random.Random(seed).shuffle(names)
    return [Network(name, "timm", timm(name), shapes=(), only_fp32=True) for name in names]


def shapes_of(module):
    """One image of 64x64 where a network of timm takes it, else of the network's own size."""
    own = ((1, *module.default_cfg["input_size"]),)
    try:
        with torch.no_grad():
            module(torch.zeros(IMAGE[0]))
        return IMAGE
    except Exception:
        return own

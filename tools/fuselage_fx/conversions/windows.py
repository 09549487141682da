"""Convolutions and pools."""

from torch import nn

from fuselage_fx.calls import Call, check_batched, converts, ints, require, window_of


def register_conv(rank):

    def conv_attributes(weight, stride, padding, dilation, groups):
        return {**window_of(rank, stride, padding, dilation, weight.shape[2:]), "groups": groups}

    def transpose_attributes(weight, stride, padding, output_padding, groups, dilation):
        return {**conv_attributes(weight, stride, padding, dilation, groups),
                "output_padding": ints(output_padding, rank, "output_padding")}

    @converts(f"torch.conv{rank}d", f"torch.nn.functional.conv{rank}d")
    def conv(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        check_batched(input, rank)
        return Call(f"conv{rank}d", [input, weight, bias],
                    **conv_attributes(weight, stride, padding, dilation, groups))

    @converts(f"torch.conv_transpose{rank}d", f"torch.nn.functional.conv_transpose{rank}d")
    def conv_transpose(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        check_batched(input, rank)
        return Call(f"conv_transpose{rank}d", [input, weight, bias],
                    **transpose_attributes(weight, stride, padding, output_padding, groups, dilation))

    @converts(getattr(nn, f"Conv{rank}d"))
    def conv_module(module, input):
        check_batched(input, rank)
        require(module.padding_mode == "zeros", "padding_mode", module.padding_mode, "'zeros'")
        return Call(f"conv{rank}d", [input], {"weight": module.weight, "bias": module.bias},
                    **conv_attributes(module.weight, module.stride, module.padding, module.dilation, module.groups))

    @converts(getattr(nn, f"ConvTranspose{rank}d"))
    def conv_transpose_module(module, input, output_size=None):
        check_batched(input, rank)
        require(output_size is None, "output_size", output_size, "None")
        return Call(f"conv_transpose{rank}d", [input], {"weight": module.weight, "bias": module.bias},
                    **transpose_attributes(module.weight, module.stride, module.padding, module.output_padding,
                                           module.groups, module.dilation))


def register_pools(rank):

    @converts(f"torch.nn.functional.max_pool{rank}d", f"torch.max_pool{rank}d")
    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        check_batched(input, rank)
        require(not return_indices, "return_indices", return_indices, "False")
        kernel = ints(kernel_size, rank, "kernel_size")
        return Call(f"max_pool{rank}d", [input], kernel_size=kernel, ceil_mode=ceil_mode,
                    **window_of(rank, stride or kernel, padding, dilation, kernel))

    @converts(f"torch.nn.functional.avg_pool{rank}d", f"torch.avg_pool{rank}d")
    def avg_pool(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
                 divisor_override=None):
        check_batched(input, rank)
        require(divisor_override is None, "divisor_override", divisor_override, "None")
        kernel = ints(kernel_size, rank, "kernel_size")
        attributes = window_of(rank, stride or kernel, padding, 1, kernel)
        del attributes["dilation"]
        # Without padding both ways of counting are one.
        return Call(f"avg_pool{rank}d", [input], kernel_size=kernel, ceil_mode=ceil_mode,
                    count_include_pad=count_include_pad and any(attributes["padding"]), **attributes)

    @converts(f"torch.nn.functional.adaptive_avg_pool{rank}d", f"torch.adaptive_avg_pool{rank}d")
    def adaptive_avg_pool(input, output_size):
        check_batched(input, rank)
        sizes = output_size if isinstance(output_size, (list, tuple)) else [output_size] * rank
        sizes = [input.shape[2 + i] if size is None else size for i, size in enumerate(sizes)]
        return Call(f"adaptive_avg_pool{rank}d", [input], output_size=ints(sizes, rank, "output_size"))

    converts(getattr(nn, f"MaxPool{rank}d"))(lambda m, input: max_pool(
        input, m.kernel_size, m.stride, m.padding, m.dilation, m.ceil_mode, m.return_indices))
    converts(getattr(nn, f"AvgPool{rank}d"))(lambda m, input: avg_pool(
        input, m.kernel_size, m.stride, m.padding, m.ceil_mode, m.count_include_pad,
        getattr(m, "divisor_override", None)))
    converts(getattr(nn, f"AdaptiveAvgPool{rank}d"))(lambda m, input: adaptive_avg_pool(input, m.output_size))


for rank in (1, 2, 3):
    register_conv(rank)
    register_pools(rank)

"""Text, as ir/print.cc and ir/base write it, and files of tensors."""

import math
import re
import struct

import torch

DTYPES = {torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32",
          torch.int64: "i64", torch.float16: "f16", torch.float32: "f32", torch.float64: "f64"}
MOST_INLINE_VALUES = 16  # As ir/print.cc.
INT64_MAX = 2**63 - 1


class DType(str):
    """An attribute that names an element type."""


def shortest(value, is_double=True):
    """The shortest decimal text that reads back as the same double (or float)."""
    value = float(value)
    if abs(value) < 1e6 and value == math.floor(value) and not (value == 0 and math.copysign(1, value) < 0):
        return str(int(value))
    for digits in range(1, 18 if is_double else 10):
        text = "%.*g" % (digits, value)
        read = float(text) if is_double else struct.unpack("f", struct.pack("f", float(text)))[0]
        if read == value:
            break
    return text


def attribute_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        text = shortest(value)
        return text if re.search("[.en]", text) else text + ".0"
    if isinstance(value, DType):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    return "[" + ", ".join(attribute_text(item) for item in value) + "]"


def type_text(dtype, shape):
    return f"{DTYPES[dtype]}[{','.join(str(size) for size in shape)}]"


def tensor_bytes(tensor):
    return tensor.detach().cpu().contiguous().numpy().tobytes()


def fingerprint(tensor):
    """ir/base/tensor.h: FNV-1a over the type's text and the data, in 8-byte words, folded."""
    result = 0xCBF29CE484222325
    for data in (type_text(tensor.dtype, tensor.shape).encode(), tensor_bytes(tensor)):
        whole = len(data) // 8 * 8
        for word in memoryview(data[:whole]).cast("Q"):
            result = ((result ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
            result ^= result >> 32
        for byte in data[whole:]:
            result = ((result ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return result


def parameter_text(tensor):
    if tensor.numel() > MOST_INLINE_VALUES:
        return f"data({fingerprint(tensor):016x})"
    values = tensor.detach().cpu().flatten().tolist()
    if tensor.dtype.is_floating_point:
        return "[" + ", ".join(shortest(value, tensor.dtype == torch.float64) for value in values) + "]"
    return "[" + ", ".join(str(int(value)) for value in values) + "]"


def write_safetensors(path, tensors):
    """The bytes that ir/safetensors.cc writes for the same tensors."""
    entries, offset = [], 0
    for name in sorted(tensors):
        tensor = tensors[name]
        size = tensor.numel() * tensor.element_size()
        shape = ",".join(str(dim) for dim in tensor.shape)
        dtype = DTYPES[tensor.dtype].upper()
        entries.append(f'"{name}":{{"dtype":"{dtype}","shape":[{shape}],"data_offsets":[{offset},{offset + size}]}}')
        offset += size
    header = ("{" + ",".join(entries) + "}").encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(header)) + header)
        for name in sorted(tensors):
            out.write(tensor_bytes(tensors[name]))

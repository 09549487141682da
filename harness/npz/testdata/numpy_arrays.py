"""Writes numpy.npz, as Debian's python3-numpy does: npz_test.cc knows what is in it."""

import numpy as np

np.savez(
    "numpy.npz",
    **{
        "bool": np.array([True, False]),
        "uint8": np.arange(250, 256, dtype=np.uint8).reshape(2, 3),
        "int8": np.array([-128, 127], dtype=np.int8),
        "int16": np.array([[-3]], dtype=np.int16),
        "int32": np.array([1 << 30], dtype=np.int32),
        "int64": np.array([-(1 << 62)], dtype=np.int64),
        "float16": np.array([0.5, -2], dtype=np.float16),
        "group/float32": np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8,
        "float64": np.array(1 / 3),
        "empty": np.zeros((0, 3), dtype=np.float32),
    },
)
np.savez_compressed("compressed.npz", zeros=np.zeros(5000, dtype=np.float32), x=np.arange(3, dtype=np.int32))

"""What of cuda_code.py does not need an object file."""

import struct
import unittest

import cuda_code


class CudaCodeTest(unittest.TestCase):

    def test_names(self):
        anonymous = "(anonymous namespace)::"
        self.assertEqual(
            cuda_code.short(f"void fuselage::cuda::RunKernel<fuselage::int8::add::cuda::{anonymous}Add>"
                            f"(fuselage::int8::add::cuda::{anonymous}Add::Params)"), "int8::add::Add")
        self.assertEqual(
            cuda_code.short("void fuselage::int8::conv2d::cuda::Conv2d<fuselage::int8::conv2d::cuda::Gemm<"
                            "fuselage::int8::conv2d::cuda::Tile<64, 64, 2, 2>, unsigned char, 16> >"
                            "(fuselage::int8::conv2d::cuda::Params)"),
            "int8::conv2d::Gemm<int8::conv2d::Tile<64, 64, 2, 2>, u8, 16>")

    def test_blocks(self):
        self.assertEqual(cuda_code.blocks_of(236, 128, "90"), 2)  # 65536 / (240 * 128)
        self.assertEqual(cuda_code.blocks_of(32, 256, "90"), 8)  # By threads, as by registers.
        self.assertEqual(cuda_code.blocks_of(32, 256, "89"), 6)  # By threads.
        self.assertEqual(cuda_code.blocks_of(16, 32, "89"), 24)  # By blocks.

    def test_attributes(self):
        info = struct.pack("<BBHII", 0x04, 0x2F, 8, 3, 37) + struct.pack("<BBH", 0x03, 0x1B, 255) + \
            struct.pack("<BBHIII", 0x04, 0x05, 12, 256, 1, 1)
        self.assertEqual([(a, payload[:4].hex()) for a, payload in cuda_code.attributes(info)],
                         [(0x2F, "03000000"), (0x1B, ""), (0x05, "00010000")])


if __name__ == "__main__":
    unittest.main()

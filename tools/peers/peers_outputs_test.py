"""What peers.py makes of the contestants' outputs."""

import math
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
import peers  # noqa: E402
from contestants import ALL  # noqa: E402

BY_NAME = {contestant.name: contestant for contestant in ALL}


def table_of(name, *batches, isa="avx512_core_vnni"):
    """The table after batches of (found, wanted)."""
    table = peers.Table({"measurements": [], "max_abs_error": None})
    for found, wanted in batches:
        worker = types.SimpleNamespace(contestant=BY_NAME[name], version="1", isa=isa)
        table.compare(worker, found, wanted)
    return table


class Outputs(unittest.TestCase):

    def test_nan_is_seen_wherever_it_stands(self):
        for found in ([math.nan, 2, 3], [1, math.nan, 3], [1, 2, math.nan], [1, math.inf, 3]):
            self.assertEqual(peers.largest_difference(found, [1, 2, 3]), math.inf)
        self.assertEqual(peers.largest_difference([1, 2], [1, 2, 3]), math.inf)
        self.assertEqual(peers.largest_difference([1, 2.5], [1, 2]), 0.5)
        self.assertIsNone(peers.largest_difference([], [1]))

    def test_the_largest_difference_of_all_batches(self):
        table = table_of("onnxruntime int8", ([7, 2.2], [7, 2]), ([7, 2], [7, 2]))
        self.assertAlmostEqual(table.entries["onnxruntime int8"]["max_abs_error"], 0.2)
        self.assertFalse(table.off)

    def test_fp32_and_onednn_are_held_to_ours(self):
        self.assertFalse(table_of("onnxruntime fp32", ([7.0005], [7])).off)
        self.assertIn("onnxruntime fp32", table_of("onnxruntime fp32", ([7.01], [7]), ([7], [7])).off)
        self.assertFalse(table_of("onednn network", ([7.03], [7])).off)
        self.assertIn("OFF by 1", table_of("onednn network", ([8], [7])).off["onednn network"])
        self.assertIn("OFF by inf", table_of("onednn network", ([math.nan], [7])).off["onednn network"])
        self.assertFalse(table_of("onednn network", ([8], [7]), isa="avx2").off, "it saturates")
        self.assertIn("fuselage int8 avx2", table_of("fuselage int8 avx2", ([7.0001], [7])).off)


class Twins(unittest.TestCase):

    def kept(self, **isas):
        workers = [types.SimpleNamespace(contestant=contestant, isa=isas.get(contestant.isa_bound or contestant.mode, isas["best"]))
                   for contestant in ALL]
        return {worker.contestant.name for worker in peers.without_twins(workers)}

    def test_what_a_bound_does_not_change_is_left_out(self):
        bounded = {contestant.name for contestant in ALL if contestant.bounded}
        self.assertEqual(self.kept(best="amx", avx2="avx2", AVX2="avx2"), set(BY_NAME))
        self.assertEqual(self.kept(best="avx2"), set(BY_NAME) - bounded)
        self.assertEqual(self.kept(best="avx2", cuda="sm_90"), set(BY_NAME) - bounded, "a GPU's is no twin of a CPU's")

    def test_an_instruction_set_bounds_all_on_the_cpu(self):
        bound = peers.chosen("", "avx512_vnni")
        self.assertEqual({one.mode for one in bound if one.ours}, {"avx512_vnni"})
        self.assertEqual({one.isa_bound for one in bound}, {"AVX512_CORE_VNNI"})
        self.assertEqual({one.name for one in bound}, {one.name for one in ALL if not one.bounded and not one.gpu
                                                       and one.program != "onnxruntime"})

    def test_a_bounded_one_alone_stays(self):
        workers = [types.SimpleNamespace(contestant=BY_NAME["fuselage int8 avx2"], isa="avx2")]
        self.assertEqual(peers.without_twins(workers), workers)


class OnAGpu(unittest.TestCase):

    def test_takes_part_where_it_is_asked_for_or_a_driver_is(self):
        on_gpu = {contestant.name for contestant in ALL if contestant.gpu}
        self.assertEqual(on_gpu, {"fuselage cuda int8", "cudnn int8 convolutions", "cudnn fp16 convolutions", "torch fp16"})
        driver = pathlib.Path("/dev/nvidiactl").exists()
        self.assertEqual({one.name for one in peers.chosen("")}, set(BY_NAME) if driver else set(BY_NAME) - on_gpu)
        self.assertEqual({one.name for one in peers.chosen("cudnn,torch")}, on_gpu - {"fuselage cuda int8"})

    def test_the_devices_time_is_told_as_such(self):
        table = peers.Table({"measurements": [], "max_abs_error": None})
        workers = [types.SimpleNamespace(contestant=BY_NAME[name], version="1", isa="-", outputs=list)
                   for name in ("fuselage int8", "fuselage cuda int8", "torch fp16")]
        table.add(workers, [[4.0], [0.5], [1.0]], 1, 1, 0.0)
        found = {name: entry["measurements"][0] for name, entry in table.entries.items()}
        self.assertIsNone(found["fuselage int8"]["device_ms"])
        self.assertEqual(found["torch fp16"]["device_ms"]["median"], 1)
        self.assertEqual(found["torch fp16"]["ratio"], 2, "over ours on the same device")

    def test_a_folders_line_is_the_cpus(self):
        table = Folder.timed({"fuselage int8": 2.0, "fuselage cuda int8": 0.1})
        self.assertEqual(peers.network_row("net", table, 1, 1)[0][2], "2.00")

    def test_f16_has_eleven_bits(self):
        self.assertFalse(table_of("torch fp16", ([7.05], [7])).off)
        self.assertIn("torch fp16", table_of("torch fp16", ([7.1], [7])).off)


class Folder(unittest.TestCase):

    @staticmethod
    def timed(medians):
        table = peers.Table({"measurements": []})
        for name, median in medians.items():
            worker = types.SimpleNamespace(contestant=BY_NAME[name], version="1", isa="-")
            table.entry(worker)["measurements"].append(
                {"batch": 1, "threads": 1, "latency_ms": {"median": median}})
        return table

    def test_a_line_takes_the_best_of_each_peer(self):
        table = self.timed({"fuselage int8": 2.0, "fuselage int8 avx2": 0.1, "fuselage fastest": 1.0,
                            "fuselage fp32": 4.0, "onnxruntime int8": 9.0, "onnxruntime own int8": 3.0,
                            "openvino int8": 5.0, "openvino fp32": 6.0})
        row, ratio = peers.network_row("net", table, 1, 1)
        self.assertEqual(row, ["net", "4.00", "2.00", "1.00", "", "3.00", "6.00", "5.00", "3.00"])
        self.assertEqual(ratio, 3)

    def test_the_mean_is_geometric(self):
        tables = {name: self.timed({"fuselage fastest": 1.0, "openvino int8": median})
                  for name, median in (("a", 0.5), ("b", 8.0))}
        self.assertIn("| 2.00 ", peers.folder_table(tables, 1, 1).splitlines()[-1])

    def test_what_did_not_run_has_no_ratio(self):
        self.assertEqual(peers.network_row("net", self.timed({"fuselage fastest": 1.0}), 1, 1)[1], None)


if __name__ == "__main__":
    unittest.main()

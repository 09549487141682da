"""fuselage_test.py WHEEL NETWORK: as somebody would who installs the wheel."""

import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

try:
    import numpy as np
except ImportError:
    print("SKIPPED: NumPy is not installed")
    sys.exit(0)

WHEEL, NETWORK = (os.path.abspath(path) for path in sys.argv[1:3])
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
PIP = [sys.executable, "-m", "pip"]
if subprocess.run(PIP + ["--version"], capture_output=True).returncode == 0:
    subprocess.run(PIP + ["install", "-q", "--no-index", "--no-deps", "--target", FOLDER, WHEEL], check=True)
else:
    zipfile.ZipFile(WHEEL).extractall(FOLDER)
sys.path.insert(0, FOLDER)
import fuselage  # noqa: E402

RANDOM = np.random.default_rng(1)


def images(count):
    _, dtype, shape = fuselage.load(NETWORK).inputs[0]
    return RANDOM.standard_normal((count,) + shape[1:]).astype(dtype)


class FuselageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.network = fuselage.load(NETWORK)
        cls.input, cls.output = cls.network.inputs[0].name, cls.network.outputs[0].name
        cls.int8 = cls.network.compile({cls.input: images(8)}, threads=2)

    def test_int8_is_near_fp32_and_the_same_on_every_instruction_set(self):
        image = images(1)
        wanted = self.network.prepare().run({self.input: image})[self.output]
        found = self.int8.prepare(threads=2).run({self.input: image})[self.output]
        self.assertEqual(found.dtype, np.float32)
        self.assertEqual(found.shape, self.int8.outputs[0].shape)
        noise = np.sum((found - wanted) ** 2) / np.sum(wanted**2)
        self.assertLess(noise, 0.01)
        self.assertGreater(noise, 0)
        scalar = self.int8.prepare(isa="scalar").run({self.input: image}, [self.output])[self.output]
        self.assertEqual(scalar.tobytes(), found.tobytes())

    def test_what_is_saved_has_the_same_bits(self):
        image, path = images(1), os.path.join(FOLDER, "network.fuse")
        wanted = self.int8.prepare().run({self.input: image})[self.output].tobytes()
        for isas in (None, ["scalar"], []):
            with self.subTest(isas):
                self.int8.save(path, isas=isas)
                loaded = fuselage.load(path)
                self.assertEqual(loaded.inputs, self.int8.inputs)
                self.assertEqual(loaded.prepare().run({self.input: image})[self.output].tobytes(), wanted)

    def test_what_loading_is_told(self):
        shape = self.network.inputs[0].shape
        whole = fuselage.load(NETWORK, shapes={self.input: shape}, outputs=["flatten.out", self.output])
        self.assertEqual(whole.inputs, self.network.inputs)
        self.assertEqual([value.name for value in whole.outputs], ["flatten.out", self.output])
        for text, options in [
            ("wanted one of as many dimensions as", {"shapes": {self.input: shape[1:]}}),
            ("found a shape of 'none'", {"shapes": {"none": np.array([1, 2])}}),
            ("found a constant for 'none', no input", {"constants": {"none": 16000}}),
            ("input 'input': found 1 values, wanted as many as", {"constants": {self.input: 16000}}),
            ("has no inputs", {"constants": {self.input: np.zeros(shape, np.int16)[:, :, ::-1]}}),
            ("'none'", {"outputs": ["none"]}),
        ]:
            with self.subTest(text), self.assertRaises(fuselage.Error) as raised:
                fuselage.load(NETWORK, **options)
            self.assertIn(text, str(raised.exception))
            self.assertIn(os.path.basename(NETWORK), str(raised.exception))
            self.assertEqual(raised.exception.code, "invalid argument")

    def test_networks_take_bytes(self):
        shape = self.network.inputs[0].shape
        channels, (mean, std) = shape[1], RANDOM.uniform(0.2, 0.6, (2, shape[1])).astype(np.float32)
        planes = RANDOM.integers(0, 256, shape, np.uint8)
        floats = (planes / np.float32(255) - mean.reshape(-1, 1, 1)) / std.reshape(-1, 1, 1)
        wanted = self.network.prepare().run({self.input: floats})[self.output]
        for image, given in ("planes", planes), ("pixels", planes.transpose(0, 2, 3, 1)):
            with self.subTest(image):
                network = fuselage.load(NETWORK, image=image, mean=mean, std=std)
                self.assertEqual(network.inputs, [(self.input, np.uint8, given.shape)])
                found = network.prepare().run({self.input: given})[self.output]
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        for text, options in [
            ("image is 'bytes', wanted one of 'floats', 'planes', 'pixels'", {"image": "bytes"}),
            (f"std has {channels + 1} values, want 1 or", {"image": "planes", "std": [1] * (channels + 1)}),
            ("mean and std are for bytes", {"mean": [0.5]}),
            ("max_memory_bytes is -1", {"max_memory_bytes": -1}),
        ]:
            with self.subTest(text), self.assertRaises(fuselage.Error) as raised:
                fuselage.load(NETWORK, **options)
            self.assertIn(text, str(raised.exception))

    def test_models_say_what_was_done_to_them(self):
        self.assertEqual(self.network.warnings + self.network.remarks, [])
        self.assertTrue([text for text in self.int8.remarks if text.startswith("quantize: applied: %")])

    def test_arrays_may_lie_anyhow(self):
        batch = images(2)
        session = self.int8.prepare(batch=2)
        self.assertEqual(session.inputs[0].shape, batch.shape)
        wanted = session.run({self.input: batch})[self.output]
        strided = np.repeat(batch, 2, axis=3)[..., ::2]
        self.assertFalse(strided.flags.c_contiguous)
        self.assertEqual(session.run({self.input: strided})[self.output].tobytes(), wanted.tobytes())

    def test_any_batch(self):
        session = self.int8.prepare(batch=None, kept_batches=2)
        self.assertEqual(session.inputs, self.int8.inputs)
        for batch in (3, 1, 2, 3):
            given = {self.input: images(batch)}
            found, wanted = session.run(given)[self.output], self.int8.prepare(batch=batch).run(given)[self.output]
            self.assertEqual(found.shape, wanted.shape)
            self.assertEqual(found.shape[0], batch)
            self.assertEqual(found.tobytes(), wanted.tobytes())
            self.assertEqual(session.outputs_at(batch), self.int8.prepare(batch=batch).outputs)
        with self.assertRaisesRegex(fuselage.Error, f'input "{self.input}" is f32.0,'):
            session.run({self.input: images(0)})
        with self.assertRaisesRegex(fuselage.Error, "found no input"):
            session.run({})

    def test_sessions_run_at_once_and_outlive_their_model(self):
        image = images(1)
        sessions = [self.network.compile({self.input: images(2)}).prepare() for _ in range(2)]
        gc.collect()
        wanted = [session.run({self.input: image})[self.output].tobytes() for session in sessions]
        found = [None, None]

        def work(i):
            for _ in range(5):
                found[i] = sessions[i].run({self.input: image})[self.output].tobytes()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, wanted)

    def test_threads_take_turns_in_a_session(self):
        session, batches = self.int8.prepare(batch=None, kept_batches=1), {n: images(n) for n in (1, 2, 3)}
        wanted = {n: self.int8.prepare(batch=n).run({self.input: batch}) for n, batch in batches.items()}
        wrong = []

        def work(first):
            for i in range(12):
                n = 1 + (first + i) % 3
                found = session.run({self.input: batches[n]})
                if found[self.output].tobytes() != wanted[n][self.output].tobytes():
                    wrong.append(n)

        threads = [threading.Thread(target=work, args=(first,)) for first in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_names_are_any_bytes(self):
        with open(NETWORK, "rb") as file:
            network = file.read().replace(self.output.encode(), b"\xff" * len(self.output))
        path = os.path.join(FOLDER, "bytes.onnx")
        with open(path, "wb") as file:
            file.write(network)
        model = fuselage.load(path)
        (output,) = model.outputs
        self.assertEqual(os.fsencode(output.name), b"\xff" * len(self.output))
        self.assertEqual(list(model.prepare().run({self.input: images(1)}, [output.name])), [output.name])

    def test_errors(self):
        session = self.int8.prepare()
        image = images(1)
        for code, text, call in [
            ("not found", "missing.onnx", lambda: fuselage.load("missing.onnx")),
            ("not found", "results.json", lambda: fuselage.Report("missing")),
            ("invalid argument", "wanted f32", lambda: session.run({self.input: image.astype(np.float64)})),
            ("invalid argument", "complex64", lambda: session.run({self.input: image.astype(np.complex64)})),
            ("invalid argument", "found no input", lambda: session.run({})),
            ("not found", "more", lambda: session.run({self.input: image, "more": image})),
            ("not found", "nothing", lambda: session.run({self.input: image}, ["nothing"])),
            ("invalid argument", "sse9", lambda: self.int8.prepare(isa="sse9")),
            ("invalid argument", "sse9", lambda: self.int8.save("x.fuse", isas=["sse9"])),
            ("unavailable", "missing/x.fuse", lambda: self.int8.save("missing/x.fuse")),
            ("invalid argument", r"'x\x00y'", lambda: session.run({"x\0y": image})),
            ("invalid argument", "batch is 9223372036854775808", lambda: self.int8.prepare(batch=1 << 63)),
            ("invalid argument", "threads is 4294967297, want", lambda: self.int8.prepare(threads=2**32 + 1)),
            ("invalid argument", "dimension of", lambda: fuselage.load(NETWORK, shapes={self.input: [1 << 64, 1]})),
            ("invalid argument", "pipeline:1:", lambda: self.network.compile({self.input: image}, pipeline="x")),
        ]:
            with self.subTest(text), self.assertRaises(fuselage.Error) as raised:
                call()
            self.assertIn(text, str(raised.exception))
            self.assertEqual(raised.exception.code, code)

    def test_notebooks_show_models_and_reports(self):
        shown = self.int8._repr_html_()
        self.assertIn(f"<td>input</td><td>{self.input}</td><td>float32</td><td>(1, ", shown)
        self.assertIn("<td>quantize</td><td>applied</td><td>%", shown)
        self.assertNotIn("remarks", self.network._repr_html_())
        with open(os.path.join(FOLDER, "results.json"), "w", encoding="utf-8") as file:
            json.dump({"model": {"name": "x"}}, file)
        with open(os.path.join(FOLDER, "report.html"), "w", encoding="utf-8") as file:
            file.write('<p id="a">1 &lt; 2</p>')
        report = fuselage.Report(FOLDER)
        self.assertEqual(report.results["model"]["name"], "x")
        self.assertIn('srcdoc="&lt;p id=&quot;a&quot;&gt;1 &amp;lt; 2&lt;/p&gt;"', report._repr_html_())

    def test_the_wheel_is_whole(self):
        self.assertEqual(fuselage.__version__, os.path.basename(WHEEL).split("-")[1])
        self.assertLess(os.path.getsize(WHEEL), 10_000_000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

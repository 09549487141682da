"""Opens report.html in headless Chromium: of ResNet18, of a network of 400 nodes, of a run that failed, of hostile names.

    page_test.py HARNESS
"""

import copy
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    import pictures
except ImportError:
    webdriver = None

HARNESS = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else None
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\"'\u001b[2J" + 10_000 * "x"
SIZES = {"wide": (1440, 1000), "narrow": (390, 800)}


def run(*args, code=0):
    ran = subprocess.run([HARNESS, *map(str, args)], capture_output=True, text=True, check=False)
    assert ran.returncode == code, f"{args} ended with {ran.returncode}, not {code}:\n{ran.stdout}\n{ran.stderr}"


def network_of_400():
    """Residual blocks of three nodes, as IR text."""
    lines = ["graph @long {", "  %x0: f32[1,64] = placeholder"]
    for i in range(133):
        lines += [
            f"  %relu{i}: f32[1,64] = call_function relu(%x{i})",
            f"  %tanh{i}: f32[1,64] = call_function tanh(%relu{i})",
            f"  %x{i + 1}: f32[1,64] = call_function add(%tanh{i}, %x{i})",
        ]
    return "\n".join(lines + ["  output(%x133)", "}"]) + "\n"


def network_of_modules():
    """Thirty modules of ten units of four nodes."""
    lines, last = ["graph @large {", "  %x.0: f32[1,64] = placeholder"], "x.0"
    for unit in [f"block{i}.unit{j}" for i in range(30) for j in range(10)]:
        lines += [
            f"  %{unit}.relu: f32[1,64] = call_function relu(%{last})",
            f"  %{unit}.tanh: f32[1,64] = call_function tanh(%{unit}.relu)",
            f"  %{unit}.sigmoid: f32[1,64] = call_function sigmoid(%{unit}.tanh)",
            f"  %{unit}.add: f32[1,64] = call_function add(%{unit}.sigmoid, %{last})",
        ]
        last = f"{unit}.add"
    return "\n".join(lines + [f"  output(%{last})", "}"]) + "\n"


def shipped(name, replacements):
    """A shipped config, without what takes its time."""
    config = (pathlib.Path(HARNESS).parent / "configs" / name).read_text()
    for long, short in replacements:
        assert long in config, long
        config = config.replace(long, short)
    return config


def quick_resnet18():
    config = shipped("resnet18.textproto", [("numeric_check { samples: 1 }", ""), ("images: 256", "images: 4"), ("min_time_ms: 1000", "min_time_ms: 50"),
                                            ("threads: [1, 0]", "threads: [1, 2]"), ("cold_cache: true", "")])
    return config[: config.index("gates {")] + "throughput { streams: 1 load_percent: [20, 60] seconds: 0.5 }\n"


def quick_decisions():
    config = shipped("decisions.textproto", [("images: 256", "images: 4"), ("min_time_ms: 500", "min_time_ms: 1"),
                                             ("sensitivity {}", "sensitivity { most: 12 samples: 2 min_time_ms: 1 }")])
    return config + "search { min_snr_db: 25 samples: 4 evaluations: 3 }\n"


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        (cls.folder / "resnet18.textproto").write_text(quick_resnet18())
        run(f"--config={cls.folder}/resnet18.textproto", "--limit=4", "--batch=1", f"--out={cls.folder}/resnet18")
        (cls.folder / "decisions.textproto").write_text(quick_decisions())
        run(f"--config={cls.folder}/decisions.textproto", "--limit=4", f"--out={cls.folder}/decisions")
        (cls.folder / "long.ir").write_text(network_of_400())
        run(f"--model={cls.folder}/long.ir", "--threads=1", f"--out={cls.folder}/long")
        run("explain", f"--model={cls.folder}/long.ir", f"--out={cls.folder}/explained")
        altered = network_of_400().replace("tanh(%relu5)", "sigmoid(%relu5)").replace(
            "  output(%x133)", "  %last: f32[1,64] = call_function relu(%x133)\n  output(%last)")
        (cls.folder / "altered.ir").write_text(altered)
        run("explain", f"--model={cls.folder}/altered.ir", f"--out={cls.folder}/altered")
        run("report", cls.folder / "explained/results.json", cls.folder / "altered/results.json")
        (cls.folder / "large.ir").write_text(network_of_modules())
        run("explain", f"--model={cls.folder}/large.ir", f"--out={cls.folder}/large")
        run("--model=/nowhere.onnx", f"--out={cls.folder}/incomplete", code=6)
        cls.hostile()
        cls.beside_peers()
        cls.session()
        cls.browser = pictures.open_browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        shutil.rmtree(cls.folder)

    @classmethod
    def hostile(cls):
        """The names of a run become hostile wherever they stand."""
        text = (cls.folder / "long/results.json").read_text()
        for name in ["x7", "tanh7", "int8", "long"]:
            text = text.replace(f'"{name}"', json.dumps(HOSTILE + name))
        results = json.loads(text)
        results["title"] = results["error"] = HOSTILE
        results["warnings"] = results["environment"]["cpu"] = HOSTILE
        results["warnings"] = [HOSTILE]
        results["passes"][0]["decisions"] = [{"kind": "missed", "node": HOSTILE + "x7", "message": HOSTILE}]
        folder = cls.folder / "hostile"
        folder.mkdir()
        (folder / "results.json").write_text(json.dumps(results))
        run("report", cls.folder / "long/results.json", folder / "results.json")

    @classmethod
    def beside_peers(cls):
        """Two peers that take twice and four times as long as ours, as tools/peers writes them."""
        results = json.loads((cls.folder / "long/results.json").read_text())
        for name, times in [("peer four by a long name", 4), ("peer two", 2)]:
            peer = copy.deepcopy(results["variants"][1]) | {"name": name, "version": "1.2", "compared_with": "int8", "layers": [], "schedules": []}
            for measurement in peer["measurements"]:
                measurement["latency_ms"] = {key: times * value for key, value in measurement["latency_ms"].items()}
                measurement |= {"speedup": measurement["speedup"] / times, "ratio": times}
            results["peers"].append(peer)
        folder = cls.folder / "peers"
        folder.mkdir()
        (folder / "results.json").write_text(json.dumps(results))
        run("report", folder / "results.json")

    @classmethod
    def session(cls):
        """Runs of three networks, one of which did not load, and steps of two stages."""
        steps = [{"stage": stage, "name": name, "outcome": outcome, "seconds": 2, "printed": printed} for stage, name, outcome, printed in
                 [("first", "well", "ok", "all is well"), ("second", "ill", "FAILED: 3", HOSTILE + "\n" + 300 * "a line\n"), ("second", "last", "ok", "")]]
        stages = cls.folder / "stages.json"
        stages.write_text(json.dumps({"status": "complete", "steps": steps}))
        run("merge", cls.folder / "steps", stages)
        run("merge", cls.folder / "session", *(cls.folder / name / "results.json" for name in ["steps", "resnet18", "long", "incomplete"]))

    def open(self, name, size="wide", scheme="light"):
        pictures.open_page(self.browser, self.folder / name / "report.html", *SIZES[size], scheme)
        self.settle()

    def open_long(self):
        """The graph as read: passes fuse most of it."""
        self.open("long")
        self.click(self.one("#graph .steps button"))
        self.click(self.one("#graph button[aria-label^='The beginning']"))

    def settle(self):
        """Drawing waits for the next frame."""
        self.browser.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));")

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector):
        return self.browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((element) => element.textContent)", selector)

    def press(self, *keys):
        webdriver.ActionChains(self.browser).send_keys(*keys).perform()
        self.settle()

    def click(self, element):
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        element.click()
        self.settle()

    def check_sound(self):
        """Nothing was logged, nothing is wider than the window, no chart is empty or cut off."""
        self.assertEqual([entry["message"] for entry in self.browser.get_log("browser")], [])
        self.assertEqual(self.browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0)
        empty = self.browser.execute_script("""
            return [...document.querySelectorAll('main > section svg')].filter((svg) => {
              const {width, height} = svg.getBoundingClientRect();
              return width < 100 || height < 50 || svg.querySelectorAll('rect, path, circle').length < 2
                || Number(svg.getAttribute('width')) > width + 1;
            }).map((svg) => svg.closest('section').id)""")
        self.assertEqual(empty, [])

    def sections(self):
        return self.browser.execute_script("return [...document.querySelectorAll('main > section')].map((s) => s.id)")

    def test_every_section_at_every_size_and_colour(self):
        everything = ["summary", "speedup", "graph", "layers", "quantization", "roofline", "passes", "latency", "timeline", "memory", "run"]
        resnet18 = everything[:-3] + ["throughput"] + everything[-3:]
        decisions = everything[:-1] + ["ablation", "sensitivity", "search", "run"]
        for name, sections in [("resnet18", resnet18), ("decisions", decisions), ("long", everything), ("explained", ["summary", "explanation", "graph", "passes", "run"]),
                               ("incomplete", ["summary", "run"]), ("session", ["session"] + resnet18), ("steps", ["session"])]:
            for size in SIZES:
                for scheme in ["light", "dark"]:
                    with self.subTest(name=name, size=size, scheme=scheme):
                        self.open(name, size, scheme)
                        self.assertEqual(self.sections(), sections)
                        self.check_sound()
                        dark = self.browser.execute_script("return document.documentElement.classList.contains('dark')")
                        self.assertEqual(dark, scheme == "dark")

    def test_a_session_shows_all_runs_and_the_one_that_is_picked(self):
        self.open("session")
        self.assertEqual(self.one("#status").text, "INCOMPLETE")
        self.assertIn("incomplete: ", self.one("#session .error").text)
        results = json.loads((self.folder / "session/results.json").read_text())
        wanted = sum(max(1, len(variant["measurements"])) for run in results["runs"] for variant in run["results"]["variants"])
        rows = self.all("#session table[aria-label='Runs'] tbody tr")
        self.assertEqual(len(rows), wanted, "one for each measurement, and for a variant that has none")
        self.assertIn("resnet18", rows[0].text)
        self.assertEqual({row.text.split()[0] for row in self.all("#session tr.selected")}, {"resnet18", "second"})
        slowest = self.one("#slowest").text
        long = next(row for row in rows if row.text.startswith("long"))
        self.click(long)
        self.assertIn("long", self.one("#session .muted").text)
        self.assertNotEqual(self.one("#slowest").text, slowest)
        self.assertEqual(self.sections()[:2], ["session", "summary"])
        self.check_sound()
        self.click(self.all("#session table[aria-label='Runs'] tbody tr")[-1])
        self.assertEqual(self.sections(), ["session", "summary", "run"])
        self.assertIn("a line", self.one("#printed").text, "of the first step that failed")
        self.click(self.all("#session table[aria-label='Steps'] tbody tr")[0])
        self.assertEqual(self.one("#printed").text, "all is well")
        self.assertFalse(self.browser.execute_script("return 'hacked' in window"))

    def test_an_incomplete_run_says_so(self):
        self.open("incomplete")
        self.assertEqual(self.one("#status").text, "INCOMPLETE")
        self.assertIn("/nowhere.onnx", self.one("#summary .error").text)

    def test_theme_button(self):
        self.open("long")
        colour = "return getComputedStyle(document.body).backgroundColor"
        light = self.browser.execute_script(colour)
        self.click(self.one("#theme"))
        self.assertNotEqual(self.browser.execute_script(colour), light)
        self.click(self.one("#theme"))
        self.assertEqual(self.browser.execute_script(colour), light)

    def test_tables_sort_and_search(self):
        self.open("resnet18")
        column = [header.lower() for header in self.texts("#layers th")].index("ms") + 1
        cells = f"#layers tbody td:nth-child({column})"
        values = [float(text) for text in self.texts(cells)]
        self.assertEqual(values, sorted(values, reverse=True))
        self.click(self.one(f"#layers th:nth-child({column}) button"))
        self.assertEqual([float(text) for text in self.texts(cells)], sorted(values))
        self.one("#layer-search").send_keys("max_pool")
        self.settle()
        found = self.texts("#layers tbody td:nth-child(3)")
        self.assertTrue(found and all("max_pool" in op for op in found), found)
        self.assertIn(f"{len(found)} of {len(values)}", self.one("#layer-count").text)

    def test_the_summary_leads_to_the_layers(self):
        self.open("resnet18")
        slowest = self.texts("#layers tbody td:nth-child(2)")[0]
        self.click(self.one("#slowest"))
        self.assertEqual(self.one("#drawer h2").text, slowest)
        self.assertIn("Measured", self.one("#drawer").text)
        self.assertEqual(self.texts("#layers tr.selected td:nth-child(2)"), [slowest])

    def test_what_to_decide_by(self):
        self.open("decisions")
        results = json.loads((self.folder / "decisions/results.json").read_text())
        self.assertEqual(self.texts("#ablation tbody td:first-child"), ["(nothing)"] + [step["name"] for step in results["passes"]])
        self.assertEqual(len(self.all("#sensitivity tbody tr")), 12)
        self.assertGreater(len(self.all("#sensitivity .point")), 6)
        harm = [float(text) for text in self.texts("#sensitivity tbody td:nth-child(2)") if text != "–"]
        self.assertEqual(harm, sorted(harm), "what harms most stands first")
        first = self.one("#sensitivity tbody tr:first-child td")
        name = first.text
        self.click(first)
        self.assertEqual(self.one("#drawer h2").text, name)
        self.one("#sensitivity input").send_keys(name)
        self.settle()
        self.assertIn(name, self.texts("#sensitivity tbody td:first-child"))
        self.assertLess(len(self.all("#sensitivity tbody tr")), 12)
        self.assertIn("min_snr_db: 25", self.one("#search").text)
        self.assertEqual(len(self.all("#search tbody tr")), len(results["search"]["trials"]) + 2, "FP32, what was tried, what was found")
        self.assertIn(results["environment"]["energy_counter"], self.one("#summary").text)

    def test_how_graphs_differ_from_those_of_another_run(self):
        self.open("altered")
        self.assertEqual(self.sections()[0], "comparison")
        self.check_sound()
        table = "#comparison table[aria-label='Graphs compared']"
        row = dict(zip(self.texts(f"{table} th"), self.texts(f"{table} tbody tr:first-child td")))
        self.assertEqual(row, {"graph after": "as read", "nodes before": "401", "now": "402", "added": "1", "removed": "–", "changed": "2", "renamed": "–"})
        self.click(self.one(f"{table} tbody td"))
        differences = [remark.text for remark in self.all("#graph-difference .remark")]
        self.assertEqual(len(differences), 3)
        self.assertIn("tanh5\nop: tanh -> sigmoid", differences[0])
        self.assertIn("output\noperand 0: x133 -> last", differences[1])
        self.assertIn("added last\nlast = relu(x133)", differences[2])
        self.click(self.one("#graph-difference .link"))
        self.assertIn("Against the run before: changed.\nop: tanh -> sigmoid", self.one("#drawer .callout").text)
        self.assertIn("against the run before: 1 added, 2 changed", self.one("#graph-changes").text)
        self.press(Keys.ESCAPE)
        self.click(self.one("#graph button[data-value='against']"))
        colours = self.browser.execute_script("return app.graph.layout.nodes.map((one) => [one.node.name, one.colour])")
        grey = dict(colours)["x7"]
        self.assertEqual({name for name, colour in colours if colour != grey}, {"tanh5", "last", "output"})
        self.check_sound()

    def test_peers_stand_beside_ours(self):
        for size in SIZES:
            self.open("peers", size)
            self.check_sound()
            tile = next(tile.text for tile in self.all("#summary .tile") if "Fastest peer" in tile.text)
            self.assertIn("2.00× our time", tile)
            self.assertIn("peer two 1.2 over int8", tile)
            names = [text for text in self.texts("#speedup svg text") if text in ("int8", "peer two", "peer four by a long name")]
            self.assertEqual(names, ["int8", "peer four by a long name", "peer two"])
            chart = self.one("#speedup svg").rect["x"]
            self.assertGreaterEqual(min(text.rect["x"] for text in self.all("#speedup svg text")), chart, "a name is cut off")
            ours, four, two = [bar.rect["width"] for bar in self.all("#speedup .speedup")]
            self.assertAlmostEqual(ours / four, 4, delta=0.1)
            self.assertAlmostEqual(ours / two, 2, delta=0.1)
            self.assertEqual(len([text for text in self.texts("#latency svg text") if text.startswith("peer")]), 2)

    def test_slider_marks_what_a_pass_changed(self):
        self.open("resnet18")
        counts = []
        for step in range(int(self.one("#pass-slider").get_attribute("max")) + 1):
            self.browser.execute_script(
                "const slider = document.getElementById('pass-slider'); slider.value = arguments[0];"
                "slider.dispatchEvent(new Event('input'));", step)
            self.settle()
            counts.append(self.one("#graph-changes").text)
            self.assertGreater(len(self.all("#graph .node")), 3)
            self.assertEqual(len(self.all("#graph .node.new, #graph .node.changed")) > 0, step > 0, step)
        self.assertEqual(len(set(counts)), len(counts))
        self.check_sound()

    def test_click_on_a_node_and_walk_by_keys(self):
        self.open_long()
        self.click(self.one("#graph .node .tint"))
        first = self.one("#drawer h2").text
        self.assertIn("gives", self.one("#drawer").text)
        self.browser.execute_script("document.querySelector('#graph svg').focus()")
        self.press(Keys.ARROW_DOWN)
        second = self.one("#drawer h2").text
        self.assertNotEqual(second, first)
        self.press(Keys.ARROW_UP)
        self.assertEqual(self.one("#drawer h2").text, first)
        self.press(Keys.ESCAPE)
        self.assertFalse(self.one("#drawer").is_displayed())
        self.press(Keys.ENTER)
        self.assertTrue(self.one("#drawer").is_displayed())
        before = self.one("#graph-changes").text
        self.press("]")
        self.assertNotEqual(self.one("#graph-changes").text, before)

    def test_timeline_zooms_and_ties_steps(self):
        self.open("resnet18")
        names = self.texts("#timeline svg > text")
        for expected in ["thread 0", "thread 1"]:
            self.assertEqual(names.count(expected), 2, "fp32 and int8")
        steps = len(self.all("#timeline .span"))
        self.assertGreater(steps, 60)
        self.click(self.one("#timeline button[data-value='1']"))
        self.assertEqual(self.texts("#timeline svg > text").count("thread 1"), 0)
        alone = len(self.all("#timeline .span"))
        self.assertLess(alone, steps)
        for _ in range(3):
            self.click(self.one("#timeline button[aria-label='Zoom the timeline in']"))
        self.assertLess(len(self.all("#timeline .span")), alone)
        self.check_sound()
        self.assertEqual(self.all("#timeline .arrow"), [])
        span = max(self.all("#timeline .span rect"), key=lambda rect: rect.rect["width"])
        self.click(span)
        self.assertTrue(self.all("#timeline .arrow"))
        self.assertTrue(self.one("#drawer").is_displayed())
        self.press(Keys.ESCAPE)
        self.click(self.one("#timeline button[aria-label='Show all of the timeline']"))
        self.assertEqual(len(self.all("#timeline .span")), alone)

    def test_memory_has_its_buffers_and_their_peak(self):
        self.open("resnet18")
        note = self.one("#memory-note").text
        self.assertIn(f"hold {len(self.all('#memory .block'))} buffers", note)
        self.assertEqual(len(self.all("#memory .peak")), 1)
        self.click(self.one("#memory .block"))
        self.assertTrue(self.one("#drawer").is_displayed())
        self.press(Keys.ESCAPE)
        self.one("#memory select").send_keys("fp32")
        self.settle()
        self.assertNotEqual(self.one("#memory-note").text, note)
        self.check_sound()

    def test_quantization_has_the_worst_layer_first(self):
        self.open("resnet18")
        local = [float(text) for text in self.texts("#quantization tbody td:nth-child(4)")]
        self.assertEqual(len(local), 21)
        self.assertEqual(local, sorted(local))
        layers = self.texts("#quantization tbody td:nth-child(2)")
        self.assertIn(layers[0], self.one("#quantization-ranges h3").text)
        conv = layers.index("layer1.0.conv1.out")
        self.click(self.all("#quantization tbody tr")[conv])
        self.assertIn(layers[conv], self.one("#quantization-ranges h3").text)
        self.assertEqual(self.texts("#drawer h2"), [layers[conv]])
        self.assertEqual(len(self.all("#quantization-ranges .range")), 1)
        self.assertEqual(len(self.all("#quantization-ranges svg")), 2)
        self.assertEqual(len(self.all("#quantization-chart .point")), 2 * len(layers))
        self.check_sound()

    def test_pictures_stand_alone(self):
        names = ["speedup", "roofline", "graph_before", "graph_after"]
        folder = self.folder / "new/pictures"
        pictures.save_pictures(self.browser, self.folder / "resnet18/report.html", folder, names)
        for name in names:
            fills = []
            for scheme in ["light", "dark"]:
                root = xml.etree.ElementTree.parse(folder / f"{name}_{scheme}.svg").getroot()
                self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
                texts = root.findall(".//{*}text")
                self.assertGreater(len(texts), 5)
                self.assertEqual({element.get("class") for element in root.iter()}, {None})
                fills.append({text.get("fill") for text in texts})
            self.assertFalse(fills[0] & fills[1], "text is dark on light, and light on dark")
        ops = [{text.text for text in xml.etree.ElementTree.parse(folder / f"graph_{end}_light.svg").getroot().findall(".//{*}text")}
               for end in ["before", "after"]]
        self.assertIn("batch_norm", ops[0] - ops[1])
        self.assertIn("int8.conv2d", ops[1] - ops[0])

    def test_modules_of_a_large_graph_open(self):
        self.open("large")
        self.click(self.one("#graph .steps button"))
        boxes = len(self.browser.execute_script("return app.graph.layout.nodes"))
        self.assertLess(boxes, 100)
        self.click(self.one("#graph button[aria-label^='The beginning']"))
        box = next(node for node in self.all("#graph .node") if "block0" in node.text)
        self.assertIn("40 nodes", box.text)
        self.click(box.find_element(By.CSS_SELECTOR, ".tint"))
        self.assertEqual(len(self.browser.execute_script("return app.graph.layout.nodes")), boxes + 9)
        self.browser.execute_script("app.select('block20.unit3.tanh', {step: app.graph.step})")
        self.settle()
        self.assertEqual(self.texts("#graph .node.selected .sub"), ["block20.unit3.tanh"])
        self.press(Keys.ESCAPE)
        self.click(next(button for button in self.all("#graph button") if button.text == "close all"))
        self.assertEqual(len(self.browser.execute_script("return app.graph.layout.nodes")), boxes)
        self.check_sound()

    def test_search_in_the_graph(self):
        self.open_long()
        self.press("/")
        self.press(*"tanh77", Keys.ENTER)
        self.assertIn("of", self.one("#graph-found").text)
        self.assertEqual(self.texts("#graph .node.selected .sub"), ["tanh77"])
        self.assertTrue(self.all("#graph .node.dim"))

    def test_numbers_and_names_as_in_the_terminal(self):
        self.open("long")
        script = "return arguments[0].map(([value, places]) => digits(value, places))"
        values = [[91.625, 2], [91.635, 2], [0.5, 0], [1.5, 0], [-2.5, 0], [2.675, 2], [1e-3, 2], [0.125, 2], [12, 1]]
        self.assertEqual(self.browser.execute_script(script, values), [f"{value:.{places}f}" for value, places in values])
        name = "/features/features.4/block/block.0/block.0.1"
        self.assertEqual(self.browser.execute_script("return [shortened(arguments[0], 44), shortened(arguments[0], 30), shortened(arguments[0], 9)]", name),
                         [name, "/features.4/block.0.1", "/f…ck.0.1"])

    def test_every_reason_is_shown(self):
        self.open("hostile")
        reasons = self.browser.execute_script("""
            app.model.decisions.set('two', [{kind: 'missed', pass: 'quantize', message: 'a'}, {kind: 'applied', pass: 'fusion', message: 'b'},
                                            {kind: 'missed', pass: 'lower', message: 'c'}, {kind: 'missed', pass: 'lower', message: 'c'}]);
            return [app.model.whyNot('two', []), app.model.whyNot('new', ['other', 'two']), app.model.whyNot('other', [])]""")
        self.assertEqual(reasons, ["quantize: a; lower: c", "quantize: a; lower: c", ""])

    def test_code_beside_the_graph(self):
        self.open_long()
        self.click(self.one("#code-button"))
        code = self.texts("#graph .code > div")
        self.assertGreater(len(code), 300)
        self.assertIn("def forward(x0):", code[0])
        self.assertTrue(code[-1].startswith("    return "))
        self.check_sound()

    def test_passes_open_and_search(self):
        self.open("resnet18")
        self.click(self.one("#passes .link"))
        self.assertTrue(self.all("#passes .remark"))
        self.one("#decision-search").send_keys("no such reason")
        self.settle()
        self.assertFalse(self.all("#passes .remark"))

    def test_hostile_names_are_text(self):
        for size in SIZES:
            self.open("hostile", size)
            self.check_sound()
            self.assertEqual(self.sections()[0], "comparison")
            self.assertIn("<script>", self.one("#title").text)
            self.assertIn("␛[2J", self.one("#summary .error").text)
            self.browser.execute_script("app.select(arguments[0], {reveal: true})", HOSTILE + "x7")
            self.settle()
            self.assertIn("<img src=x", self.one("#drawer").text)
            self.check_sound()
            self.assertIsNone(self.browser.execute_script("return window.hacked"))
            self.assertEqual(self.all("img"), [])


if __name__ == "__main__":
    missing = [] if webdriver else ["python3-selenium"]
    missing += [name for name in ["chromium", "chromedriver"] if not shutil.which(name)]
    if missing:
        print(f"SKIPPED: no {', no '.join(missing)} here to open report.html with")
        sys.exit(0)
    os.environ.setdefault("HOME", tempfile.gettempdir())
    unittest.main()

"""Saves charts of a report.html as SVG files, light and dark: the README's pictures.

    pictures.py REPORT.html FOLDER [SECTION...]

By default those of the sections speedup and roofline: FOLDER/speedup_light.svg, FOLDER/speedup_dark.svg, ... Of the graph
there are two, graph_before and graph_after the passes, each from its first node. They are the page's own charts, drawn by
its scripts in headless Chromium, so that nothing draws them a second time. Needs Debian's chromium, chromium-driver and
python3-selenium.
"""

import pathlib
import shutil
import sys

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

WIDTH = 900

# Style sheets stay behind: each element takes along what they say of it.
STANDALONE = """
const chart = document.querySelector(`#${arguments[0]} svg`);
const copy = chart.cloneNode(true);
const originals = [chart, ...chart.querySelectorAll('*')];
[copy, ...copy.querySelectorAll('*')].forEach((element, i) => {
  const style = getComputedStyle(originals[i]);
  for (const name of ['fill', 'stroke', 'stroke-width', 'paint-order', 'stroke-dasharray', 'font-size', 'font-weight', 'display']) {
    if (!['none', 'inline', '400', ''].includes(style.getPropertyValue(name)) || originals[i].hasAttribute(name) || name === 'fill') {
      element.setAttribute(name, style.getPropertyValue(name));
    }
  }
  for (const name of ['class', 'style', 'tabindex']) element.removeAttribute(name);
});
copy.setAttribute('font-family', getComputedStyle(chart).fontFamily);
return new XMLSerializer().serializeToString(copy);
"""


def open_browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ["headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1440,1000"]:
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


def open_page(browser, path, width, height, scheme):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(f"file://{pathlib.Path(path).resolve()}")


def save_pictures(browser, report, folder, sections):
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for scheme in ["light", "dark"]:
        open_page(browser, report, WIDTH, 1000, scheme)
        for section in sections:
            chart, _, end = section.partition("_")
            if end:
                browser.execute_script("app.graph.go(arguments[0] === 'after' ? Infinity : 0); app.graph.home()", end)
            svg = browser.execute_script(STANDALONE, chart)
            (pathlib.Path(folder) / f"{section}_{scheme}.svg").write_text(svg + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with open_browser() as opened:
        save_pictures(opened, sys.argv[1], sys.argv[2], sys.argv[3:] or ["speedup", "roofline"])

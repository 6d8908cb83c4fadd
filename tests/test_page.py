"""The page in a real browser: script, console, and findings of an accessibility checker."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from stages.report.tables import write_csv
from tests.places import ROOT

AXE = Path(os.environ.get("AXE_CORE", ROOT / "node_modules/axe-core/axe.min.js"))
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --virtual-time-budget=60000 --enable-logging=stderr"
)
LINE = 1.1  # height of a word's box, at least, in sizes of its letters
needs_browser = pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")
needs_poppler = pytest.mark.skipif(not shutil.which("pdftotext"), reason="pdftotext (poppler) is not installed")
needs_axe = pytest.mark.skipif(not AXE.exists(), reason=f"axe-core is not at {AXE}; `npm install axe-core` brings it")


PAGES = ("report", "claims", "audit", "appendix")
pytestmark = [pytest.mark.nightly, needs_browser]


@pytest.fixture(scope="module")
def pages(reports) -> dict[str, str]:
    return {name: (reports / f"{name}.html").read_text() for name in PAGES}


def browse(page: str, folder: Path, *flags: str) -> tuple[str, str]:
    """The document after all scripts have run, and the log of the browser."""
    (folder / "page.html").write_text(page)
    command = ["chromium", *FLAGS.split(), *flags, f"--user-data-dir={folder}/user", "--dump-dom"]
    done = subprocess.run([*command, f"file://{folder}/page.html"], capture_output=True, text=True, timeout=180)
    return done.stdout, done.stderr


def read_result(dom: str) -> Any:
    """The content of the element `result`, which the script of a test has written."""
    return json.loads(html.unescape(re.findall(r'<pre id="result">(.*?)</pre>', dom, re.DOTALL)[0]))


def add_script(page: str, expression: str, before: str = "") -> str:
    """The page with a script that writes the value of an expression, a promise or not, into the element `result`."""
    script = f"""<script>{before}</script><script>Promise.resolve({expression}).then((value) => {{
      const place = document.createElement("pre");
      place.id = "result";
      place.textContent = JSON.stringify(value);
      document.body.append(place);
    }});</script></body>"""
    return page.replace("</body>", script)


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_the_accessibility_checker_finds_nothing(pages, tmp_path, scheme, name):
    ask = "axe.run(document).then((found) => found.violations.map((v) => [v.id, v.nodes[0].html.slice(0, 200)]))"
    page = add_script(pages[name], ask, AXE.read_text())
    dom, log = browse(page, tmp_path, f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}")
    assert read_result(dom) == []
    assert "CONSOLE" not in log


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_not_wider_than_the_screen(pages, tmp_path, width, name):
    (tmp_path / "inner.html").write_text(pages[name])
    frame = f'<iframe src="inner.html" style="width:{width}px;height:900px;border:0"></iframe>'
    root = "frames[0].document.documentElement"
    ask = f"<script>onload = () => document.title = {root}.scrollWidth <= {root}.clientWidth</script>"
    dom, _ = browse(frame + ask, tmp_path, "--window-size=1600,1000", "--allow-file-access-from-files")
    assert "<title>true</title>" in dom


def test_tables_sort_by_numbers_with_all_lines_of_a_row(pages, tmp_path):
    ask = """(() => {
      const table = document.querySelector("#courtois2024_table2_model_parameters table");
      table.closest("details").open = true;
      const names = () => [...table.tBodies].map((body) => body.rows[0].cells[0].innerText.split("\\n")[0]);
      const header = [...table.tHead.rows[0].cells].find((cell) => cell.innerText.startsWith("Parameters"));
      header.querySelector("button").click();
      const up = [names(), header.getAttribute("aria-sort")];
      header.querySelector("button").click();
      return [up, [names(), header.getAttribute("aria-sort")], table.tBodies[0].rows.length, lines(table)[1].length];
    })()"""
    dom, log = browse(add_script(pages["report"], ask), tmp_path)
    (up, ascending), (down, descending), rows, width = read_result(dom)
    assert (ascending, descending) == ("ascending", "descending")
    assert next(n for n in up if n.startswith("BERT-base")) == "BERT-base symmetric"
    assert down[0] == "BERT-base original" and rows == 2 and width == 4
    assert "CONSOLE" not in log


def test_a_table_becomes_the_csv_of_what_it_shows(pages, tmp_path):
    ask = """(() => {
      const table = document.querySelector("#aop_text_numbers table");
      table.closest("details").open = true;
      return csv(table).split("\\r\\n");
    })()"""
    lines = read_result(browse(add_script(pages["appendix"], ask), tmp_path)[0])
    assert lines[0] == '"Number","Source","Value"'
    assert lines[1].startswith('"Weights') and '"published"' in lines[1]


def test_a_spreadsheet_takes_no_downloaded_or_copied_text_for_a_formula_and_every_number_stands(pages, tmp_path):
    texts = ["=1+1", "+0.66; p = 0.015", "-0.72 points", "@SUM(A1)", "-0.5", "+0.3", "−0.5", "-", "1e-05", "a = b"]
    ask = f"""(() => {{
      const table = document.createElement("table");
      for (const text of {json.dumps(texts)}) table.createTHead().insertRow().insertCell().textContent = text;
      document.body.append(table);
      return [...table.rows].map((row) => cells(row)[0]);
    }})()"""
    found = read_result(browse(add_script(pages["appendix"], ask), tmp_path)[0])
    written = write_csv(pd.DataFrame({"text": texts})).splitlines()
    assert found == written[1:]
    assert found[:5] == ["'=1+1", "'+0.66; p = 0.015", "'-0.72 points", "'@SUM(A1)", "-0.5"]


def test_claims_are_found_by_words_source_and_verdict_and_a_link_shows_and_unfolds_a_hidden_one(pages, tmp_path):
    ask = """(async () => {
      const figure = document.querySelector("#claims");
      const shown = () => [...figure.querySelectorAll("li")].filter((entry) => !entry.hidden);
      const control = (name) => figure.querySelector(`.filters [name="${name}"]`);
      const set = (field, value) => { field.value = value; field.dispatchEvent(new Event("input")); };
      const all = shown().length;
      set(control("Source"), "Courtois et al. 2024");
      const source = shown().map((entry) => entry.querySelector("dl").id);
      set(control("This run"), "holds");
      const holds = shown().map((entry) => entry.querySelector("i").innerText);
      set(figure.querySelector("input"), "no such words");
      const none = shown().length;
      location.hash = "K-01";
      await new Promise((done) => setTimeout(done, 200));
      const unfolded = [...figure.querySelectorAll("li [open] > dl")].map((place) => place.id);
      const heads = getComputedStyle(figure.querySelector(".heads")).position;
      return [all, source, holds, none, shown().length, unfolded, heads];
    })()"""
    dom, log = browse(add_script(pages["claims"], ask), tmp_path, "--window-size=1280,900")
    everything, source, holds, none, again, unfolded, heads = read_result(dom)
    assert everything == again > len(source) > len(holds) > 0 == none
    assert all(name.startswith("C24-") for name in source) and unfolded == ["K-01"]
    assert all(word.split()[-1] == "holds" for word in holds) and heads == "sticky"
    assert "CONSOLE" not in log


def test_without_a_script_a_link_unfolds_its_entry(pages, tmp_path):
    page = re.sub("<script>.*?</script>", "", pages["claims"], flags=re.DOTALL)
    ask = """(async () => {
      location.hash = "K-01";
      await new Promise((done) => setTimeout(done, 200));
      return [...document.querySelectorAll("li [open] > dl")].map((place) => place.id);
    })()"""
    assert read_result(browse(add_script(page, ask), tmp_path)[0]) == ["K-01"]


@needs_poppler
@pytest.mark.parametrize("name", PAGES)
def test_no_printed_word_is_cut_off_or_below_seven_points(pages, tmp_path, name):
    browse(pages[name], tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={tmp_path}/page.pdf")
    found = subprocess.run(
        ["pdftotext", "-bbox", tmp_path / "page.pdf", "-"], check=True, capture_output=True, text=True
    )
    for page in found.stdout.split("<page ")[1:]:
        width = float(re.findall(r'width="([\d.]+)"', page)[0])
        for left, top, right, bottom in re.findall(r'xMin="(.+?)" yMin="(.+?)" xMax="(.+?)" yMax="(.+?)">', page):
            assert float(left) >= 0 and float(right) <= width
            assert float(bottom) - float(top) >= 6.95 * LINE

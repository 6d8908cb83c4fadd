"""The page in a real browser: its script, its console, and what an accessibility checker finds."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.test_report import make

ROOT = Path(__file__).parents[1]
AXE = Path(os.environ.get("AXE_CORE", ROOT / "node_modules/axe-core/axe.min.js"))
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --virtual-time-budget=60000 --enable-logging=stderr"
)
needs_browser = pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")
needs_axe = pytest.mark.skipif(not AXE.exists(), reason=f"axe-core is not at {AXE}; `npm install axe-core` brings it")


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> str:
    with pytest.MonkeyPatch.context() as monkeypatch:
        return (make(tmp_path_factory.mktemp("run"), monkeypatch) / "report.html").read_text()


def browse(page: str, folder: Path, *flags: str) -> tuple[str, str]:
    """The document after its scripts have run, and what the browser logged."""
    (folder / "page.html").write_text(page)
    command = ["chromium", *FLAGS.split(), *flags, f"--user-data-dir={folder}/user", "--dump-dom"]
    done = subprocess.run([*command, f"file://{folder}/page.html"], capture_output=True, text=True, timeout=180)
    return done.stdout, done.stderr


def result(dom: str) -> object:
    """What a script of a test left in the element `result`."""
    return json.loads(html.unescape(re.search(r'<pre id="result">(.*?)</pre>', dom, re.DOTALL)[1]))


def with_script(page: str, expression: str, before: str = "") -> str:
    """The page with a script that writes the value of an expression, a promise or not, into the element `result`."""
    script = f"""<script>{before}</script><script>Promise.resolve({expression}).then((value) => {{
      const place = document.createElement("pre");
      place.id = "result";
      place.textContent = JSON.stringify(value);
      document.body.append(place);
    }});</script></body>"""
    return page.replace("</body>", script)


@needs_browser
@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_accessibility_checker_finds_nothing(report, tmp_path, scheme):
    ask = "axe.run(document).then((found) => found.violations.map((v) => [v.id, v.nodes[0].html.slice(0, 200)]))"
    page = with_script(report, ask, AXE.read_text())
    dom, log = browse(page, tmp_path, f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}")
    assert result(dom) == []
    assert "CONSOLE" not in log


@needs_browser
def test_tables_sort_by_numbers_with_all_lines_of_a_row(report, tmp_path):
    ask = """(() => {
      const table = document.querySelector("#courtois2024_table2_model_parameters table");
      const names = () => [...table.tBodies].map((body) => body.rows[0].cells[0].innerText.split("\\n")[0]);
      const header = [...table.tHead.rows[0].cells].find((cell) => cell.innerText.startsWith("Parameters"));
      header.querySelector("button").click();
      const up = [names(), header.getAttribute("aria-sort")];
      header.querySelector("button").click();
      return [up, [names(), header.getAttribute("aria-sort")], table.tBodies[0].rows.length, lines(table)[1].length];
    })()"""
    dom, log = browse(with_script(report, ask), tmp_path)
    (up, ascending), (down, descending), rows, width = result(dom)
    assert (ascending, descending) == ("ascending", "descending")
    assert next(n for n in up if n.startswith("BERT-base")) == "BERT-base symmetric"
    assert down[0] == "BERT-base original" and rows == 2 and width == 4
    assert "CONSOLE" not in log


@needs_browser
def test_a_table_becomes_the_csv_of_what_it_shows(report, tmp_path):
    ask = 'csv(document.querySelector("#aop_text_numbers table")).split("\\r\\n")'
    lines = result(browse(with_script(report, ask), tmp_path)[0])
    assert lines[0].startswith('"Number","Where","Published"') and lines[1].split(",")[0].startswith('"Weights')
    assert len(lines) == 10


def test_without_its_script_the_page_has_no_dead_button(report):
    assert "<button" not in report.split("<script>")[0]

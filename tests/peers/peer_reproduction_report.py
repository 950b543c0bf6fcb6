"""The report of a reproduction under axe-core, the checker of accessibility, in dark and in light, wide and narrow."""

from pathlib import Path

import pytest

from panpan.repro.journey.report import ReproductionReport, Told
from panpan.repro.journey.report_html import html_page
from tests.faces.server.served_page import chromium
from tests.peers.installs import installed_once
from tests.peers.node import install_packages
from tests.repro.judged_claims import EVERY_VERDICT, check_of, judged

TOLD = Told(paper="toys.pdf", claims_from="read from toys.pdf", model="small", explanation="e" * 300, preparation="p")


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = installed_once(tmp_path_factory, "axe", lambda folder: install_packages(folder, ["axe-core@4.14.1"]))
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest.mark.timeout(300)  # with the install
def test_reproduction_report_has_no_findings_of_axe_and_fits(axe: str, tmp_path: Path) -> None:
    wide = judged("w" * 180, "1" * 60, "deviates", "r" * 200, (1.0, 2.0), ("h" * 150,))
    place = tmp_path / "report.html"
    place.write_text(html_page(ReproductionReport(check_of(*EVERY_VERDICT.judgements, wide), TOLD)))
    found, widths, asked = [], [], list[str]()
    try:
        with chromium() as browser:
            page = browser.new_context(bypass_csp=True).new_page()  # axe-core is not of the page
            page.on("request", lambda request: asked.append(request.url))
            page.goto(place.as_uri())
            for scheme in ("light", "dark"):
                for width in (1280, 320):
                    page.emulate_media(color_scheme=scheme)
                    page.set_viewport_size({"width": width, "height": 800})
                    widths.append(page.evaluate("document.documentElement.scrollWidth"))
                    found += page.evaluate(axe + "\n;axe.run().then(result => result.violations)")
    except RuntimeError as error:
        pytest.skip(str(error))

    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
    assert widths == [1280, 320] * 2
    assert asked == [place.as_uri()]

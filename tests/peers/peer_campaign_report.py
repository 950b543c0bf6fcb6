"""The report of a campaign under axe-core, the checker of accessibility, in dark and in light, wide and narrow."""

from pathlib import Path

import pytest

from panpan.batch.reporting.report import write_report
from panpan.batch.store.records import Changes, Needs, Verdict
from tests.batch.campaign_files import begun_campaign, result_of, task_of
from tests.faces.server.served_page import chromium
from tests.peers.installs import installed_once
from tests.peers.node import install_packages

STATUSES = ("passed", "failed", "error", "done", "cancelled")


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = installed_once(tmp_path_factory, "axe", lambda folder: install_packages(folder, ["axe-core@4.14.1"]))
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest.mark.timeout(300)  # with the install
def test_report_has_no_findings_of_axe_and_fits_narrow_screens(axe: str, tmp_path: Path) -> None:
    tasks = [task_of(name, seed=seed) for name in ("table", "w" * 180, "<b>bold</b>") for seed in (1, 2)]
    changes = Changes(files=("a.py",), added=1)
    results = [
        result_of(task, status, number, changes=changes, verdict=Verdict(exit_code=0, seconds=1.0), message="m" * 200)
        for task in tasks
        for number, status in enumerate(STATUSES, 1)
    ]
    folder = begun_campaign(tmp_path / "camp", tasks, results, {"attempts": 7})
    folder.attempt(tasks[0].id, 6).path.mkdir(parents=True)
    folder.attempt(tasks[0].id, 6).write_needs(Needs(kind="question", text="Which split?"))
    write_report(folder)
    found, widths, asked = [], [], list[str]()
    try:
        with chromium() as browser:
            page = browser.new_context(bypass_csp=True).new_page()  # axe-core is not of the page
            page.on("request", lambda request: asked.append(request.url))
            page.goto((folder.path / "report.html").as_uri())
            for scheme in ("light", "dark"):
                for width in (1280, 320):
                    page.emulate_media(color_scheme=scheme)
                    page.set_viewport_size({"width": width, "height": 800})
                    widths.append(page.evaluate("document.documentElement.scrollWidth"))
                    found += page.evaluate(axe + "\n;axe.run().then(result => result.violations)")
    except RuntimeError as error:
        pytest.skip(str(error))

    assert [one["id"] for one in found] == []
    assert widths == [1280, 320] * 2
    assert asked == [(folder.path / "report.html").as_uri()]

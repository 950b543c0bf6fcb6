"""The page in the browser under axe-core, the checker of accessibility, in dark and in light.

`PANPAN_PICTURE=FOLDER` keeps pictures of the page.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.faces.server.served_page import chromium, served_page
from tests.model_server import Reply, Text, Thinking, Tokens, ToolCall, call, say
from tests.peers.installs import installed_once
from tests.peers.node import install_packages

SOURCE = '''"""Scores of the table."""


def mean(values):
    return sum(values) / (len(values) - 1)


def table(rows):
    return {name: mean(values) for name, values in rows.items()}
'''
EDIT = {"file_path": "table1.py", "old_string": "(len(values) - 1)", "new_string": "len(values)"}
TODOS = [
    {"content": "Read table1.py", "activeForm": "Reading table1.py", "status": "completed"},
    {"content": "Correct the mean", "activeForm": "Correcting the mean", "status": "in_progress"},
    {"content": "Run the tests", "activeForm": "Running the tests", "status": "pending"},
]
FOUND = """The mean divides by **one too few**, so that every score of table 1 is too high:

| rows | paper | here |
|---|---|---|
| base | 71.2 | 74.9 |
| ours | 78.4 | 82.5 |

I correct it in `mean()`, and leave the rest as it is."""
DONE = """`mean()` divides by the number of values now:

1. The scores are those of the paper.
2. Nothing else in the file has changed.

```python
mean([1, 2, 3])  # 2.0
```
"""
PROMPT = "Why are the scores of table 1 higher than in the paper?"
QUESTIONS = [
    {
        "header": "Seed",
        "question": "Which seed should the runs use?",
        "options": [{"label": "0", "description": "as in the paper"}, {"label": "1", "description": "another one"}],
        "multiSelect": False,
    }
]
SCRIPTS: Mapping[str, Sequence[Reply]] = {
    PROMPT: [
        Reply((Thinking("The numbers come from mean()."), ToolCall("TodoWrite", {"todos": TODOS}))),
        call("Read", {"file_path": "table1.py"}),
        Reply((Text(FOUND), ToolCall("Edit", EDIT)), tokens=Tokens(input=18_000, output=400)),
        Reply((Text(DONE),), tokens=Tokens(input=19_000, output=300)),
    ],
    "Which seed?": [call("AskUserQuestion", {"questions": QUESTIONS}), say("Seed 0 it is.")],
}
WIDE, NARROW = {"width": 1180, "height": 860}, {"width": 320, "height": 640}


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = installed_once(tmp_path_factory, "axe", lambda folder: install_packages(folder, ["axe-core@4.14.1"]))
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


class Look:
    """One page, looked at by axe-core in both colours and sizes."""

    def __init__(self, page: Any, axe: str) -> None:
        self.page, self.axe = page, axe
        self.found: list[str] = []

    def at(self, name: str) -> None:
        """Note findings, and keep pictures."""
        for scheme in ("light", "dark"):
            for size, viewport in (("wide", WIDE), ("narrow", NARROW)):
                self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                self.page.set_viewport_size(viewport)
                if folder := os.environ.get("PANPAN_PICTURE"):
                    self.page.screenshot(path=Path(folder, f"{name}-{size}-{scheme}.png"))
                for one in self.page.evaluate(self.axe + "\n;axe.run().then(result => result.violations)"):
                    if one["impact"] in ("serious", "critical"):
                        targets = [node["html"][:200] for node in one["nodes"]]
                        self.found.append(f"{name}, {size}, {scheme}: {one['id']} at {targets}")
        self.page.set_viewport_size(WIDE)


@pytest.mark.timeout(300)  # with the install
def test_page_has_no_serious_findings_of_axe(axe: str, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/table1.py").write_text(SOURCE)
    try:
        with chromium() as browser, served_page(tmp_path, SCRIPTS) as address:
            # axe-core is not of the page, whose policy would keep it out
            page = browser.new_context(bypass_csp=True, viewport=WIDE).new_page()
            look = Look(page, axe)
            page.goto(address.partition("#")[0])
            page.get_by_label("Token").wait_for()
            look.at("token")
            page.goto("about:blank")
            page.goto(address)
            page.locator("#prompt").fill(PROMPT)
            page.keyboard.press("Enter")
            page.locator(".question").wait_for()
            look.at("permission")
            page.get_by_role("button", name="Yes", exact=True).click()
            page.locator(".ended").wait_for()
            page.get_by_role("tab", name="Changes").click()
            page.get_by_text("+    return").last.wait_for()
            look.at("done")
            for summary in page.locator("main summary").all():
                summary.click()
            look.at("opened")
            page.get_by_role("button", name="Undo last turn").click()
            page.get_by_role("dialog").wait_for()
            look.at("undo")
            page.keyboard.press("Escape")
            page.get_by_role("tab", name="Files").click()
            page.locator("#prompt").fill("Which seed?")
            page.keyboard.press("Enter")
            page.get_by_role("radio").first.wait_for()
            look.at("question")
    except RuntimeError as error:
        pytest.skip(str(error))

    assert look.found == []

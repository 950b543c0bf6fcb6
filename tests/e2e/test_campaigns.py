"""`panpan batch` as users call it: a campaign from its beginning to the report, with real attempts."""

import json

from tests.e2e.conftest import Panpan
from tests.fakes.campaign import git
from tests.model_server import RecordedRequest, Reply, call, say, serving

CAMPAIGN = """
verify = "grep -q {seed} table.txt"
model = "claude-sonnet-4-5"

[[task]]
id = "table"
prompt = "Write {seed} into table.txt."

[axes]
seed = [7, 8]

[workspace]
source = "project"

[attempt]
flags = ["--permission-mode", "acceptEdits"]
"""


def always_seven(request: RecordedRequest) -> Reply:
    if any(message["role"] == "assistant" for message in request.messages):
        return say("It is written.")
    return call("Write", {"file_path": "table.txt", "content": "7\n"})


def test_campaign_runs_reports_and_is_picked(panpan: Panpan) -> None:
    project = panpan.workspace / "camp" / "project"
    project.mkdir(parents=True)
    (project / "README.md").write_text("A paper.\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "--all")
    git(project, "commit", "-q", "-m", "first")
    (panpan.workspace / "camp" / "campaign.toml").write_text(CAMPAIGN)

    refused = panpan.run("batch", "run", "camp")
    with serving(always_seven) as server:
        panpan.use(server)
        done = panpan.run("batch", "run", "camp", "--trust", "-f", "json")
    status = panpan.run("batch", "status", "camp")
    again = panpan.run("batch", "run", "camp", "--trust")
    pick = panpan.run("--cwd", "camp", "batch", "pick", ".", "table/seed=7", "--yes")

    assert (refused.code, "add --trust" in refused.stderr) == (2, True)
    told = json.loads(done.stdout)
    assert (done.code, told["by_axis"]) == (0, {"seed": {"7": {"passed": 1}, "8": {"failed": 1}}})
    assert "2 of 2 attempts (100 %): 1 passed, 1 failed" in status.stdout
    assert (again.code, len(server.requests)) == (0, 4)
    assert (pick.code, (project / "table.txt").read_text()) == (0, "7\n")
    assert "| table/seed=7 | P | 1 of 1" in (panpan.workspace / "camp" / "report.md").read_text()

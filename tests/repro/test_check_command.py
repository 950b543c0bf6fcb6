"""`panpan repro check` and `show`: what they print, and their exit codes."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from panpan.cli.subcommands import subcommands
from panpan.errors import ConfigError
from panpan.repro.checking.check import CHECK_FILE, RESULTS_FOLDER, CheckOptions
from panpan.repro.checking.check_command import confirmed_in, run, show
from panpan.repro.checking.judging import Obstacle, judge_all, obstacle_of
from panpan.repro.checking.results import CheckReport, ClaimRun
from panpan.repro.claims.claim import Claim
from panpan.repro.claims.claims_file import claim_text
from panpan.repro.claims.confirmations import Confirmations
from tests.prepared_command import PREPARED
from tests.repro.claim_runs import claim_of, runs_of
from tests.terminal_emulator.terminal import Terminal

GIVEN = {"seeds": 3, "only": (), "on": None, "at_once": None, "max_hours": 1.0, "allows_unconfirmed": False}
SCRIPT = "import sys\nprint('mean: 3.5', 'n:', 4 + int(sys.argv[1]))\n"


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's own answers out of the tests."""
    monkeypatch.setenv("PANPAN_HOME", str(tmp_path / "home"))


def checked(claim: Claim, *numbers: str) -> CheckReport:
    """The check of one claim whose runs gave some numbers."""
    obstacle = obstacle_of(claim, is_confirmed=claim.confirmed)
    obstacles: dict[str, Obstacle] = {} if obstacle is None else {claim.id: obstacle}
    runs: list[ClaimRun] = runs_of(*numbers)
    return CheckReport(judgements=judge_all([claim], {claim.id: runs}, obstacles=obstacles))


class Checks:
    """Gives a report instead of a check."""

    def __init__(self, report: CheckReport) -> None:
        self._report = report
        self.options: CheckOptions | None = None

    async def __call__(self, folder: Path, options: CheckOptions, *, notify: Callable[[str], None]) -> CheckReport:
        self.options = options
        notify("1 run of 1 command")
        return self._report


@pytest.mark.parametrize(
    ("claim", "numbers", "code", "last"),
    [
        (claim_of("83.1"), ["83.1"], 0, "1 claim: 1 reproduced"),
        (claim_of("83.1"), ["80.2", "80.2"], 1, "1 claim: 1 deviates"),
        (claim_of("83.1"), ["80.2", "80.9", "80.4"], 0, "1 claim: 1 not reproducible"),
        (claim_of("83.1"), [], 0, "1 claim: 1 not run"),
        (claim_of("83.1", confirmed=False), [], 5, "claims wait for you; panpan repro confirm asks about each"),
    ],
)
async def test_exit_code_is_that_of_the_worst_claim(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], claim: Claim, numbers: list[str], code: int, last: str
) -> None:
    (tmp_path / "claims.toml").write_text(claim_text(claim))
    checks = Checks(checked(claim, *numbers))
    assert await run(tmp_path, "text", {**GIVEN, "trusts": True}, checks) == code
    out, err = capsys.readouterr()
    assert out.splitlines()[-1].startswith(last)
    assert err == "1 run of 1 command\n"
    assert checks.options is not None
    assert checks.options.seeds == 3


async def test_json_has_the_whole_check_and_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = claim_of("83.1")
    (tmp_path / "claims.toml").write_text(claim_text(claim))
    report = checked(claim, "80.2", "80.2")
    await run(tmp_path, "json", {**GIVEN, "trusts": True}, Checks(report))
    facts = json.loads(capsys.readouterr().out)
    assert facts.pop("exit_code") == 1
    assert CheckReport.model_validate(facts) == report


async def test_check_does_not_begin_without_trust(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(claim_text(claim_of("83.1")))
    checks = Checks(CheckReport())
    with pytest.raises(ConfigError, match=r"claims\.toml is not trusted"):
        await run(tmp_path, "text", {**GIVEN, "trusts": False}, checks)
    assert checks.options is None


def test_show_tells_the_last_check_and_changes_since(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = claim_of("83.1")
    (tmp_path / "claims.toml").write_text(claim_text(claim))
    show(tmp_path, "text")
    assert capsys.readouterr().out.splitlines()[-1] == "1 claim, not checked yet"

    report = checked(claim, "83.1").model_copy(update={"ended_at": "2026-11-30T05:00:02.000+00:00"})
    (tmp_path / RESULTS_FOLDER).mkdir()
    (tmp_path / RESULTS_FOLDER / CHECK_FILE).write_text(report.model_dump_json())
    show(tmp_path, "text")
    assert capsys.readouterr().out.splitlines()[-2:] == ["1 claim: 1 reproduced", "checked 2026-11-30 05:00 UTC"]

    (tmp_path / "claims.toml").write_text(claim_text(claim_of("83.2")))
    show(tmp_path, "text")
    assert "; claims.toml has changed since" in capsys.readouterr().out
    show(tmp_path, "json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["claims"]["claim"][0]["value"] == "83.2"
    assert CheckReport.model_validate(facts["check"]) == report


def test_word_of_an_author_counts_only_in_their_repository(tmp_path: Path) -> None:
    folder, claim, other = tmp_path / "folder", claim_of("83.1"), claim_of("83.1", confirmed=False)
    folder.mkdir()
    assert [confirmed_in(folder)(one) for one in (claim, other)] == [True, False]

    (folder / "source").mkdir()
    (folder / "state.json").write_text('{"what": "panpan reproduction"}')
    assert not confirmed_in(folder)(claim)
    Confirmations(folder, tmp_path / "home").keep([claim])
    assert confirmed_in(folder)(claim)


def test_damaged_result_is_named(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(claim_text(claim_of("83.1")))
    (tmp_path / RESULTS_FOLDER).mkdir()
    (tmp_path / RESULTS_FOLDER / CHECK_FILE).write_text("{")
    with pytest.raises(ConfigError, match=r"check.json is damaged .*; remove it, and run panpan repro check"):
        show(tmp_path, "text")


def test_check_asks_on_the_terminal_and_runs_the_commands(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "run.py").write_text(SCRIPT)
    right = {"command": "python3 run.py {seed}", "extract": {"output": "mean: (.*) n"}}
    wrong = {"id": "t/n", "command": "python3 run.py {seed}", "extract": {"output": " n: (.*)"}}
    (project / "claims.toml").write_text(claim_text(claim_of("3.5", **right)) + claim_text(claim_of("40", **wrong)))
    env = dict(os.environ)
    argv = PREPARED.argv("repro", "check", env=env)
    with Terminal(argv, env=env, cwd=project, rows=40) as terminal:
        terminal.wait_for("command, in the sandbox: python3 run.py {seed}")
        terminal.wait_for("Do you trust these claims?")
        terminal.send("1\r")
        terminal.wait_for("2 claims: 1 reproduced, 1 deviates")
        assert terminal.wait() == 1
        assert "t/n: 4 with the paper's seed 0 instead of 40, the same in 2 runs" in terminal.text


def test_commands_of_reproductions_are_found() -> None:
    found = subcommands()
    assert found["repro"].load().name == "repro"
    assert found["reproduce"].load().name == "reproduce"

"""The demo's last lines come from a run of the tests that knows no keys."""

from pathlib import Path

import pytest

from panpan.capabilities.local_model.demo import BUG
from panpan.cli.demo_command import check, show
from panpan.cli_kit.demo import Scene

TESTS = """
import os, sys, unittest

class Tests(unittest.TestCase):
    def test_it(self):
        self.assertNotIn("ANTHROPIC_API_KEY", os.environ)
        self.assertTrue({is_fixed})
"""


@pytest.mark.parametrize(("is_fixed", "code", "verdict"), [(True, 0, "'OK'"), (False, 1, "'FAILED (failures=1)'")])
def test_demo_check_runs_tests_without_the_users_keys(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_fixed: bool,
    code: int,
    verdict: str,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789abcdef")
    (tmp_path / "test_it.py").write_text(TESTS.format(is_fixed=is_fixed))

    assert check(tmp_path) == code
    assert f"says {verdict}" in capsys.readouterr().out


TAPE = """
version = 1

[[reply]]
expects.prompt_contains = "look"
text = "All tests pass."

[[reply]]
expects.prompt_contains = "run"
[[reply.tool_use]]
name = "Bash"
input = { command = "python3 -m unittest" }

[[reply]]
expects.results_contain = ["OK"]
text = "They pass indeed."
"""


@pytest.mark.parametrize(
    ("prompts", "code", "said"),
    [(["look"], 1, "The work is not done: the model ran no tests."), (["look", "run"], 0, "")],
)
def test_demo_plays_prompts_in_order_until_tests_ran(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], prompts: list[str], code: int, said: str
) -> None:
    (tmp_path / "tape.toml").write_text(TAPE)

    assert show(Scene("In {project}", prompts, f"cassette:{tmp_path / 'tape.toml'}", changes=BUG), tmp_path) == code

    shown = capfd.readouterr()
    assert shown.err.strip() == said
    assert [line for line in shown.out.splitlines() if line.startswith("❯")] == [f"❯ {prompt}" for prompt in prompts]
    assert ("They pass indeed." in shown.out) == (code == 0)

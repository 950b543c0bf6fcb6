"""What the demo says at its end comes from a run of the tests that knows no keys."""

from pathlib import Path

import pytest

from panpan.cli.demo_scene import check

TESTS = """
import os, sys, unittest

class Tests(unittest.TestCase):
    def test_it(self):
        self.assertNotIn("ANTHROPIC_API_KEY", os.environ)
        self.assertTrue({is_fixed})
"""


@pytest.mark.parametrize(("is_fixed", "code", "verdict"), [(True, 0, "'OK'"), (False, 1, "'FAILED (failures=1)'")])
def test_the_tests_are_run_without_the_keys_of_the_user(
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

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from panpan.errors import ConfigError
from panpan.integrations.harbor_agent import install_script, model_variables, require_wheel, run_script, totals_of

PANPAN = "/installed-agent/panpan/bin/panpan"


def run(tmp_path: Path, fake: str, instruction: str = "do it") -> subprocess.CompletedProcess[str]:
    """Run the lines of a run with a program in panpan's place."""
    program = tmp_path / "panpan"
    program.write_text(f"#!/bin/bash\nprintf '%s\\n' \"$@\" >>{tmp_path}/arguments\n{fake}\n")
    program.chmod(0o755)
    script = run_script(instruction, "s1", str(tmp_path), model="anthropic/m", max_turns=9)
    return subprocess.run(
        ["bash", "-c", script.replace(PANPAN, str(program))], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("code", [0, 3, 4, 5])
def test_run_that_ends_or_reaches_a_limit_is_no_failure(tmp_path: Path, code: int) -> None:
    instruction = "it's $HOME; `ls`\n--yes"

    done = run(tmp_path, f'[ "$1" = sessions ] && {{ echo exported; exit 0; }}; echo said; exit {code}', instruction)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "panpan.jsonl").read_text() == "said\n"
    assert (tmp_path / "trajectory.json").read_text() == "exported\n"
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.startswith("-f\nstream-json\n--max-turns\n9\n--model\nanthropic/m\n--session-id\ns1\n")
    assert f"--yes\n--sandbox\noff\n-p\n--\n{instruction}\nsessions\nexport\ns1\n--format\natif\n" in arguments


def test_failed_run_tells_why_and_leaves_no_empty_trajectory(tmp_path: Path) -> None:
    done = run(tmp_path, "echo 'panpan: no key' >&2; exit 2")

    assert done.returncode == 2
    assert "no key" in done.stderr
    assert not (tmp_path / "trajectory.json").exists()


def test_install_script_quotes_what_it_installs() -> None:
    script = install_script("panpan==1; rm -rf /")

    assert shlex.quote("panpan==1; rm -rf /") in script
    assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("wheel", [None, Path("nowhere.whl")])
def test_no_package_of_an_index_is_installed(wheel: Path | None) -> None:
    with pytest.raises(ConfigError, match="panpan is not on PyPI; name a wheel of it with --ak wheel=FILE"):
        require_wheel(wheel)


def test_variables_are_those_of_the_vendor_and_of_panpan() -> None:
    environment = {
        "ANTHROPIC_API_KEY": "a",
        "OPENAI_API_KEY": "o",
        "PANPAN_EFFORT": "high",
        "PANPAN_HOME": "/home/ada/.panpan",
        "AWS_SECRET_ACCESS_KEY": "no",
    }

    assert model_variables("anthropic/claude-x", environment) == {"ANTHROPIC_API_KEY": "a", "PANPAN_EFFORT": "high"}
    assert {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"} <= model_variables(None, environment).keys()


def test_totals_are_read_from_a_trajectory(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    metrics = {"total_prompt_tokens": 20, "total_cached_tokens": 5, "total_completion_tokens": 3}
    path.write_text(json.dumps({"final_metrics": metrics}))

    assert totals_of(path) == {
        "n_input_tokens": 20,
        "n_cache_tokens": 5,
        "n_output_tokens": 3,
        "cost_usd": None,
    }
    assert totals_of(tmp_path / "missing.json") == {}

"""The user's browser, which is a script that writes down what it is given."""

import sys
from pathlib import Path

import pytest

from panpan.system.processes.user_browser import show_in_browser
from tests.system.backends import until

PAGE = "https://example.org/login?a=b"


def browser(folder: Path) -> Path:
    """Return a browser that writes its argument, its keys and its terminal into files."""
    script = folder / "browser"
    code = (
        "import os, sys\n"
        f"keys = [name for name in os.environ if name.endswith('_KEY')]\n"
        "seen = [sys.argv[1], keys, os.isatty(0), os.getsid(0) == os.getppid()]\n"
        f"open({str(folder / 'new')!r}, 'w').write(repr(seen))\n"
        f"os.rename({str(folder / 'new')!r}, {str(folder / 'seen')!r})\n"
    )
    script.write_text(f"#!{sys.executable} -I\n{code}")
    script.chmod(0o755)
    return script


async def test_page_is_shown_without_keys_or_modules_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for name in ("webbrowser", "subprocess", "shlex"):
        (project / f"{name}.py").write_text(f"open({str(tmp_path / 'stolen')!r}, 'w')\n")
    monkeypatch.chdir(project)
    monkeypatch.setenv("BROWSER", str(browser(tmp_path)))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-1234567890")

    assert show_in_browser(PAGE)
    await until((tmp_path / "seen").exists)

    assert (tmp_path / "seen").read_text() == repr([PAGE, [], False, True])
    assert not (tmp_path / "stolen").exists()


@pytest.mark.parametrize("name", ["lynx", "/usr/bin/w3m"])
def test_browser_that_needs_a_terminal_is_not_started(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import webbrowser

    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.GenericBrowser(name))

    assert not show_in_browser(PAGE)


def test_machine_without_a_browser_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import webbrowser

    def none() -> object:
        raise webbrowser.Error

    monkeypatch.setattr(webbrowser, "get", none)

    assert not show_in_browser(PAGE)

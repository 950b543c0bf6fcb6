import subprocess
from pathlib import Path

import pytest

from panpan.cli.ci.runs import git_places, require_sandbox
from panpan.errors import ConfigError
from panpan.system.sandbox.choice import SandboxChoice


def test_commands_are_refused_where_no_sandbox_works() -> None:
    with pytest.raises(ConfigError, match=r"none works here \(this kernel has no Landlock\)"):
        require_sandbox(SandboxChoice(None, ("this kernel has no Landlock",)))


def test_settings_of_every_repository_in_a_checkout_are_found(tmp_path: Path) -> None:
    for words in (["."], ["vendor/lib"], ["--bare", "mirror"], ["--separate-git-dir", "store", "linked"]):
        subprocess.run(["git", "init", "-q", *words], cwd=tmp_path, check=True)
    (tmp_path / "objects" / "refs").mkdir(parents=True)
    (tmp_path / "config").write_text("no repository\n")

    found = {str(place.relative_to(tmp_path)) for place in git_places(tmp_path)}

    assert found == {".git", "vendor/lib/.git", "mirror/config", "store/config"}  # linked/.git has only a path

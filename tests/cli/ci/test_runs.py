import pytest

from panpan.cli.ci.runs import require_sandbox
from panpan.errors import ConfigError
from panpan.system.sandbox.choice import SandboxChoice


def test_commands_are_refused_where_no_sandbox_works() -> None:
    with pytest.raises(ConfigError, match=r"none works here \(this kernel has no Landlock\)"):
        require_sandbox(SandboxChoice(None, ("this kernel has no Landlock",)))

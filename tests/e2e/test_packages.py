"""The installed program installs packages, says what changed, takes it back, and explains what does not fit."""

from pathlib import Path

import pytest

from tests.capabilities.packages.conftest import make_environment, write_wheel
from tests.e2e.conftest import Panpan
from tests.model_server import ToolCall, calls, say, serving


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    write_wheel(folder, "shelf", "1.0")
    write_wheel(folder, "shelf", "2.0")
    write_wheel(folder, "lamp", "1.0", ["shelf<2"])
    write_wheel(folder, "desk", "1.0", ["shelf>=2"])
    return folder


def unpacked_pip(folder: Path) -> Path:
    """Unpack the pip that Python brings along."""
    import ensurepip
    import zipfile

    (wheel,) = (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def pip(operation: str, *packages: str, wheels: Path) -> ToolCall:
    return ToolCall("pip", {"operation": operation, "packages": packages, "wheels": str(wheels)})


def test_pip_tool_installs_rolls_back_and_explains_conflicts(panpan: Panpan, wheels: Path, tmp_path: Path) -> None:
    make_environment(panpan.workspace / ".venv", unpacked_pip(tmp_path / "pip"))
    steps = [pip("install", "lamp", wheels=wheels), pip("install", "desk", "lamp", wheels=wheels)]
    script = [*(calls(step) for step in steps), calls(ToolCall("pip", {"operation": "rollback"})), say("done")]

    with serving(script) as server:
        panpan.use(server)
        rules = ("--allowedTools", f"pip,Read(/{wheels}/**)")
        done = panpan.run("-p", "go on", *rules)

    assert (done.stdout, done.code) == ("done\n", 0)
    told = [
        block["content"]
        for message in server.requests[-1].messages
        for block in message["content"]
        if "content" in block
    ]
    texts = [text if isinstance(text, str) else text[0]["text"] for text in told]
    assert "added: lamp 1.0, shelf 1.0" in texts[0]
    assert "desk 1.0 needs shelf>=2" in texts[1]
    assert "lamp 1.0 needs shelf<2" in texts[1]
    assert "removed: lamp 1.0, shelf 1.0" in texts[2]
    packages = next((panpan.workspace / ".venv").glob("lib/python3*/site-packages"))
    assert not (packages / "lamp.py").exists()

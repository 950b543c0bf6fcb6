"""Sandbox for tests that run with both kinds of it."""

from pathlib import Path

import pytest
import pytest_asyncio

from tests.system.sandbox.boxes import KINDS, Box, made


@pytest_asyncio.fixture(params=KINDS)
async def box(request: pytest.FixtureRequest, tmp_path: Path) -> Box:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    (workspace / "src").mkdir(parents=True)
    outside.mkdir()
    (workspace / "src" / "module.py").write_text("x = 1\n")
    (outside / "file").write_text("untouched\n")
    (outside / "folder").mkdir()
    return Box(await made(request.param), workspace, outside)

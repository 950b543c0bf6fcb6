"""The first command finds its analysis loaded: that happens while the model writes its first reply."""

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from tests.model_server import say, serving

CODE = """
    import json, sys
    from contextlib import aclosing
    from pathlib import Path
    import anyio
    from panpan.api import open_session

    async def main(root, url):
        env = {"HOME": str(root), "PANPAN_HOME": str(root / "home"), "ANTHROPIC_API_KEY": "sk-test",
               "ANTHROPIC_BASE_URL": url, "PANPAN_SESSIONS_TITLE": "first-words", "PATH": "/usr/bin:/bin"}
        async with open_session(root / "workspace", env=env) as session:
            before = "panpan.shell_analysis.judge" in sys.modules
            async with aclosing(session.submit("hello")) as events:
                async for _ in events:
                    pass
            with anyio.move_on_after(20):
                while "panpan.shell_analysis.judge" not in sys.modules:
                    await anyio.sleep(0.01)
            print(json.dumps([before, "panpan.shell_analysis.judge" in sys.modules]))

    anyio.run(main, Path(sys.argv[1]), sys.argv[2])
"""


def test_analysis_is_loaded_beside_the_first_request(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    with serving([say("Hello.")]) as server:
        argv = [sys.executable, "-c", dedent(CODE), str(tmp_path), server.url]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [False, True]

"""One story from beginning to end, as a cassette with real tools: a paper is reproduced.

The repository of a toy paper pins a package to a version that another one does not bear, and its data is missing. The
model reads the paper's page, looks at the environment, runs into the conflict, mends the pin, installs, downloads the
data and runs the experiment; the number that comes out is the one of the paper. What was recorded of it plays again, to
the character, without paper, packages and data.
"""

import hashlib
import re
import zlib
from contextlib import aclosing
from pathlib import Path

from panpan.api import open_session
from panpan.capabilities.cassettes.recorded_session import read_session
from panpan.capabilities.cassettes.recording import Recording
from panpan.capabilities.cassettes.replay import Replay, no_wait
from panpan.capabilities.cassettes.replay_run import play, replay_session, show_nothing
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import PermissionAnswer, PermissionQuestion
from tests.capabilities.packages.conftest import make_environment, pip_files, write_wheel
from tests.fakes.file_server import Files
from tests.fakes.outside import PUBLIC, Network, serving

__all__ = ["pip_files"]  # a fixture

DATA = "value\n" + "".join(f"{number}\n" for number in (900, 1, 2, 3, 4, 5, 6, -900))
"""Its mean without the largest and the smallest value is 3.5."""
PACKED = zlib.compress(DATA.encode(), wbits=31)
SHA256 = hashlib.sha256(PACKED).hexdigest()
PAPER = f"""<html><head><title>Robust means of toys</title></head><body><nav>Home</nav><article>
<h1>Robust means of toys</h1>
<p>We measure toys and take the mean without the largest and the smallest value, which nobody had done before.
The measurements are noisy, and the usual mean says little about them, as the appendix shows at some length.</p>
<table><tr><th>Estimator</th><th>Value</th></tr><tr><td>trimmed mean</td><td>3.50</td></tr></table>
<p>The data is at <a href="/toys.csv.gz">http://data.example.org/toys.csv.gz</a> (SHA-256 {SHA256}).</p>
</article></body></html>"""
EXPERIMENT = """\
import csv, gzip
import toystats, toyplot

with gzip.open("data/toys.csv.gz", "rt") as file:
    values = [float(row["value"]) for row in csv.DictReader(file)]
print(f"trimmed mean: {toystats.trimmed_mean(values):.2f}")
"""
REQUIREMENTS = "toystats==1.0\ntoyplot==3.1\n"
TRIMMED = "def trimmed_mean(values):\n    kept = sorted(values)[1:-1]\n    return sum(kept) / len(kept)\n"
TAPE = f"""
version = 1
[[reply]]
text = "The paper first."
tool_use = [{{ name = "WebFetch", input = {{ url = "http://paper.example.org/toys.html" }} }}]
[[reply]]
tool_use = [{{ name = "EnvDoctor", input = {{}} }}, {{ name = "Read", input = {{ file_path = "requirements.txt" }} }}]
[[reply]]
tool_use = [{{ name = "pip", input = {{ operation = "install", file = "requirements.txt", wheels = "wheels" }} }}]
[[reply]]
text = "toyplot wants a newer toystats than the pin allows."
tool_use = [{{ name = "Edit", input = {{ file_path = "requirements.txt", old_string = "toystats==1.0", new_string = "toystats>=2" }} }}]
[[reply]]
tool_use = [{{ name = "pip", input = {{ operation = "install", file = "requirements.txt", wheels = "wheels" }} }}]
[[reply]]
tool_use = [{{ name = "DatasetDownload", input = {{ action = "prepare", source = "http://data.example.org/toys.csv.gz", sha256 = "{SHA256}" }} }}]
[[reply]]
tool_use = [{{ name = "DatasetDownload", input = {{ action = "download" }} }}]
[[reply]]
tool_use = [{{ name = "Bash", input = {{ command = ".venv/bin/python experiment.py" }} }}]
[[reply]]
text = "The experiment gives 3.50, as the paper says."
"""  # noqa: E501 - a table of a tape stands on one line


async def test_paper_with_a_wrong_pin_and_missing_data_is_reproduced(tmp_path: Path, pip_files: Path) -> None:
    workspace, tape = tmp_path / "workspace", tmp_path / "tape.toml"
    workspace.mkdir()
    tape.write_text(TAPE)
    (workspace / "experiment.py").write_text(EXPERIMENT)
    (workspace / "requirements.txt").write_text(REQUIREMENTS)
    (workspace / "wheels").mkdir()
    write_wheel(workspace / "wheels", "toystats", "1.0")
    write_wheel(workspace / "wheels", "toystats", "2.0", code=TRIMMED)
    write_wheel(workspace / "wheels", "toyplot", "3.1", ["toystats>=2"])
    make_environment(workspace / ".venv", pip_files)
    files = Files({"/toys.html": PAPER.encode(), "/toys.csv.gz": PACKED})
    files.headers["Content-Type"] = "text/html; charset=utf-8"
    cuts = [len(PACKED) // 2]

    def cut_the_data() -> None:
        if files.asked[-1][0] == "GET /toys.csv.gz":
            files.cut_after += cuts[:1]
            cuts.clear()

    files.before = cut_the_data
    network = Network(names={"paper.example.org": [PUBLIC], "data.example.org": [PUBLIC]})
    asked: list[PermissionQuestion] = []

    async def yes(question: PermissionQuestion) -> PermissionAnswer:
        asked.append(question)
        return PermissionAnswer(is_allowed=True)

    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home")}
    settings = {"model": f"cassette:{tape}", "sandbox.mode": "off", "web.pace_s": 0.0, "web.browser": "off"}
    async with serving(files.serve) as port:
        network.ports[PUBLIC, 80] = port
        recording = Recording(tmp_path / "story.jsonl")
        opened = open_session(
            workspace, overrides=settings, env=env, ask=yes, network=network.web, interceptor=recording
        )
        async with opened as session, aclosing(session.submit("reproduce the paper")) as events:
            results = [event async for event in events if isinstance(event, ToolResultMessage)]

    page, _, _, conflict, _, installed, _, downloaded, run = (result.text for result in results)
    of_paper = re.search(r"trimmed mean[^0-9]*([0-9.]+)", page)
    of_run = re.search(r"trimmed mean: ([0-9.]+)", run)
    assert of_paper is not None
    assert of_run is not None
    assert of_run[1] == of_paper[1] == "3.50"
    assert "toyplot 3.1 needs toystats>=2" in conflict
    assert "toystats 2.0" in installed
    assert "checksum as expected" in downloaded
    assert [result.is_error for result in results] == [False, False, False, True, *[False] * 5]
    assert {question.tool_name for question in asked} == {"WebFetch", "pip", "Edit", "DatasetDownload", "Bash"}

    empty = tmp_path / "empty"
    empty.mkdir()
    replay = Replay(read_session(tmp_path / "story.jsonl"), "strict", wait=no_wait)
    report = await play(replay, replay_session(replay, open_session, empty, env=env), show_nothing)

    assert report.is_same, report
    assert (report.requests, report.tool_calls) == (9, 9)
    assert list(empty.iterdir()) == []

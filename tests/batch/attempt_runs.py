"""Attempts that run a real panpan against a scripted model."""

import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from panpan.batch.attempts.attempt import Worker, run_attempt
from panpan.batch.store.folder import AttemptFolder, CampaignFolder
from panpan.batch.store.records import AttemptEnd, Finished, FrozenCampaign, Job, Limits, Result, Task
from tests.fakes.campaign import frozen_of, git, make_campaign, task_of
from tests.model_server import ModelServer, RecordedRequest
from tests.prepared_command import PreparedCommand

MOST_SLEEP_S = 2.0
KEY = "sk-ant-test-0123456789abcdef"
SETTINGS = """
[attempt]
flags = ["--yes", "--sandbox", "off"]
retries = 2
"""


async def until(is_true: Callable[[], bool]) -> None:
    """Wait until something is so, which other processes make so."""
    with anyio.fail_after(20):
        while not await anyio.to_thread.run_sync(is_true):  # noqa: ASYNC110 - another process makes it true
            await anyio.sleep(0.02)


class AttemptRuns:
    """One attempt of a campaign that has begun.

    Args:
        folder: An empty folder.
        server: The model.
        prepared: Starts panpan.
        campaign: Text of campaign.toml, beside the task.
        task: The task.
    """

    def __init__(
        self,
        folder: Path,
        server: ModelServer,
        prepared: PreparedCommand | None,
        campaign: str = SETTINGS,
        task: Task | None = None,
    ) -> None:
        self.task = task or task_of()
        self.root = folder
        self.server = server
        self.campaign: CampaignFolder = make_campaign(folder, f'{campaign}\n[[task]]\nid = "first"\nprompt = "Go."\n')
        self.frozen: FrozenCampaign = frozen_of(self.campaign, [self.task])
        self.attempt: AttemptFolder = self.campaign.attempt(self.task.id, 1)
        self.environ = {
            **{name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")},
            "HOME": str(folder / "user"),
            "NO_PROXY": "*",
            "PANPAN_SESSIONS_TITLE": "first-words",
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": server.url,
        }
        self._prepared = prepared
        self.pauses: list[float] = []

    def worker(self, **fields: Any) -> Worker:
        usual: dict[str, Any] = {"environ": self.environ, "host": "here", "sleep": self._sleep}
        if self._prepared is not None:
            usual["panpan"] = self._prepared.argv(env=self.environ)
        return Worker(**{**usual, **fields})

    def job(self, **fields: Any) -> Job:
        usual = {
            "folder": str(self.campaign.path),
            "campaign_id": self.frozen.id,
            "task_id": self.task.id,
            "attempt": 1,
            "limits": Limits(),
        }
        return Job(**{**usual, **fields})

    async def run(self, names: Sequence[str] = (), *, worker: Worker | None = None, **job: Any) -> AttemptEnd:
        """Run it, with GPUs of these names."""
        return await run_attempt(self.job(**job), names, worker=worker or self.worker())

    @asynccontextmanager
    async def running(
        self, begun: str, *, worker: Worker | None = None, times: int = 1
    ) -> AsyncGenerator[list[AttemptEnd], None]:
        """Run it beside the block, which begins once a file of this name is in the workspace, and wait for its end.

        Args:
            begun: Name of the file.
            worker: The process that runs it.
            times: Runs at once; further ones begin with the block.
        """
        ends: list[AttemptEnd] = []

        async def run() -> None:
            ends.append(await self.run(worker=worker))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await until(lambda: (self.workspace / begun).exists())
            for _ in range(times - 1):
                group.start_soon(run)
            yield ends

    async def _sleep(self, seconds: float) -> None:
        """Wait as a worker does, but not for long."""
        if seconds > MOST_SLEEP_S:
            self.pauses.append(seconds)
        else:
            await anyio.sleep(seconds)

    def commit(self) -> None:
        """Commit the files of the project, for the attempts."""
        source = Path(self.frozen.source)
        git(source, "add", "--all")
        git(source, "commit", "-q", "-m", "more")
        self.frozen = frozen_of(self.campaign, [self.task])

    async def result(self, gpus: Sequence[str] = (), *, job_gpus: int = 0, **job: Any) -> Result:
        """Run it to its result."""
        end = await self.run(gpus, gpus=job_gpus, **job)
        assert isinstance(end, Finished), end
        return end.result

    @property
    def workspace(self) -> Path:
        return self.attempt.workspace


def prompts_of(request: RecordedRequest) -> list[str]:
    """Return the texts of the user in a request, without reminders."""
    texts = []
    for message in request.messages:
        if message["role"] == "user":
            blocks = message["content"]
            found = [blocks] if isinstance(blocks, str) else [one["text"] for one in blocks if one["type"] == "text"]
            texts += [text for text in found if not text.startswith("<")]
    return texts


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

"""Data sets: downloads in two steps."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from panpan.capabilities.datasets.download_plan import load_data_config
from panpan.capabilities.datasets.settings import DataSettings
from panpan.core.background import Background
from panpan.core.hooks import Hook, ToolCall
from panpan.core.late_tool import late_tool
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability, concurrently
from panpan.session.context import SessionContext
from panpan.system.web.domain_lists import without_closed_hosts
from panpan.types.permission import Allow, PermissionMode, PermissionQuestion, Reason

SMALL_BYTES = 1_000_000_000


class SmallDownloads(Hook):
    """Says yes in the mode `auto` to small downloads: the user let panpan look at where they come from.

    Args:
        mode: Returns the permission mode.
    """

    def __init__(self, mode: Callable[[], PermissionMode]) -> None:
        self._mode = mode

    async def answer_question(self, call: ToolCall, question: PermissionQuestion) -> Allow | None:
        from panpan.capabilities.datasets.dataset_download import DatasetDownloadInput, DatasetDownloadTool

        if not (isinstance(call.tool, DatasetDownloadTool) and isinstance(call.args, DatasetDownloadInput)):
            return None
        if self._mode() != "auto":
            return None
        size = call.tool.size_of(call.args)
        if size is None or size > SMALL_BYTES or any(reason.kind != "not-allowed" for reason in question.reasons):
            return None
        return Allow(Reason("the mode auto lets it bring what is small from where it was allowed to look", "mode"))


class Datasets(Capability):
    """Downloads data sets."""

    name = "datasets"
    settings_model = DataSettings
    settings: DataSettings

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        outside = without_closed_hosts(session.network, session.gate.closing_rule)
        self._data = load_data_config(
            self.settings,
            session.settings.web,
            session.setup.env,
            outside,
            session.user_agent,
            session.gate.stricter_rule,
        )

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        background = self.session.find(Background) if agent.is_main else None
        maker = "dataset_download:DatasetDownloadTool"
        return (late_tool(__package__, "DatasetDownload", maker, self._data, background),)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (SmallDownloads(lambda: agent.gate.mode),)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        async with concurrently(then=self._data.client.aclose):
            yield

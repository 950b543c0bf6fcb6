"""Data sets: downloads in two steps."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from panpan.capabilities.datasets.dataset_download import DatasetDownloadTool
from panpan.capabilities.datasets.download_plan import load_data_config
from panpan.capabilities.datasets.settings import DataSettings
from panpan.core.background import Background
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability, beside
from panpan.session.context import SessionContext
from panpan.system.web.domain_lists import without_closed_hosts


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
            session.gate.new_restriction,
        )

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return (DatasetDownloadTool(self._data, self.session.find(Background) if agent.is_main else None),)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        async with beside(then=self._data.client.aclose):
            yield

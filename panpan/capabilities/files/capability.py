"""Files: reading, writing, editing, renaming, notebooks; and the reminder that a file has changed."""

from collections.abc import Iterable
from typing import Any

from panpan.capabilities.files.edit import EditTool
from panpan.capabilities.files.file_changed import FileChanged
from panpan.capabilities.files.multi_edit import MultiEditTool
from panpan.capabilities.files.notebook_edit import NotebookEditTool
from panpan.capabilities.files.patch import PatchTool
from panpan.capabilities.files.read import ReadTool
from panpan.capabilities.files.rename import RenameTool
from panpan.capabilities.files.write import WriteTool
from panpan.core.tool import Tool
from panpan.editing.rename_plan import WordSearch
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.reminders.source import ReminderSource


class Files(Capability):
    """Reads and changes files."""

    name = "files"

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return (
            ReadTool(),
            WriteTool(),
            EditTool(),
            MultiEditTool(),
            PatchTool(),
            RenameTool(lambda: self.session.find(WordSearch)),
            NotebookEditTool(),
        )

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        return (FileChanged(agent.context.seen_files, agent.context.paths.root),)

    def offers(self) -> Iterable[object]:
        return (ReadTool(),)

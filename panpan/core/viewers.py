"""Tools that show the model a path, also for what the user names: the call is theirs, and so is what it may show."""

from abc import ABC, abstractmethod
from typing import Any

from pydantic import BaseModel

from panpan.core.tool import Tool


class FileViewer(ABC):
    """Shows what is in a file."""

    @abstractmethod
    def file_call(self, path: str, lines: tuple[int, int] | None) -> tuple[Tool[Any], BaseModel]:
        """Return the call that shows a file.

        Args:
            path: As the user wrote it.
            lines: The first and the last line, from 1; None for the whole file.
        """


class FolderViewer(ABC):
    """Shows what is in a folder."""

    @abstractmethod
    def folder_call(self, path: str) -> tuple[Tool[Any], BaseModel]:
        """Return the call that shows the folder at a path, as the user wrote it."""

"""Which tools there are, in the order in which the model is told of them."""

from typing import Any

from panpan.tools.files.edit import EditTool
from panpan.tools.files.multi_edit import MultiEditTool
from panpan.tools.files.patch import PatchTool
from panpan.tools.files.read import ReadTool
from panpan.tools.files.rename import RenameTool
from panpan.tools.files.write import WriteTool
from panpan.tools.planning.ask_user import AskUserQuestionTool
from panpan.tools.search.glob import GlobTool
from panpan.tools.search.grep import GrepTool
from panpan.tools.search.ls import LsTool
from panpan.tools.shell.bash import BashTool
from panpan.tools.tool import Tool
from panpan.types.user_questions import UserAsker


def all_tools(ask_user: UserAsker | None = None) -> list[Tool[Any]]:
    """Return a new instance of every tool, for one session.

    Args:
        ask_user: Puts questions of the model to the user; None: nobody is there to answer.
    """
    return [
        ReadTool(),
        WriteTool(),
        EditTool(),
        MultiEditTool(),
        PatchTool(),
        RenameTool(),
        LsTool(),
        GlobTool(),
        GrepTool(),
        BashTool(),
        AskUserQuestionTool(ask_user),
    ]

"""Which tools there are, in the order in which the model is told of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from panpan.capabilities.background.task_output import TaskOutputTool
from panpan.capabilities.background.task_stop import TaskStopTool
from panpan.capabilities.background.tasks_background import Background
from panpan.capabilities.datasets.data_setup import DataSetup
from panpan.capabilities.datasets.dataset_download import DatasetDownloadTool
from panpan.capabilities.environment.env_doctor import EnvDoctorTool
from panpan.capabilities.files.documents.notebook_edit import NotebookEditTool
from panpan.capabilities.files.edit import EditTool
from panpan.capabilities.files.multi_edit import MultiEditTool
from panpan.capabilities.files.patch import PatchTool
from panpan.capabilities.files.read import ReadTool
from panpan.capabilities.files.rename import RenameTool
from panpan.capabilities.files.write import WriteTool
from panpan.capabilities.history.read_history import ReadHistoryTool
from panpan.capabilities.language_servers.code_intelligence import CodeIntelligence
from panpan.capabilities.language_servers.lsp import LspTool
from panpan.capabilities.packages.conda import CondaTool
from panpan.capabilities.packages.package_tool import PackageSetup
from panpan.capabilities.packages.pip import PipTool
from panpan.capabilities.packages.pixi import PixiTool
from panpan.capabilities.packages.uv import UvTool
from panpan.capabilities.plan_mode.enter_plan_mode import EnterPlanModeTool
from panpan.capabilities.plan_mode.exit_plan_mode import ExitPlanModeTool
from panpan.capabilities.plan_mode.planning import Planning
from panpan.capabilities.questions.ask_user import AskUserQuestionTool
from panpan.capabilities.search.glob import GlobTool
from panpan.capabilities.search.grep import GrepTool
from panpan.capabilities.search.ls import LsTool
from panpan.capabilities.shell.bash import BashTool
from panpan.capabilities.subagents.subagents import Subagents
from panpan.capabilities.subagents.task import TaskTool
from panpan.capabilities.subagents.worktrees.agents_worktrees import AgentWorktrees
from panpan.capabilities.subagents.worktrees.merge_worktree import MergeWorktreeTool
from panpan.capabilities.todos.todo_store import TodoStore
from panpan.capabilities.todos.todo_write import TodoWriteTool
from panpan.capabilities.web.page_reader import PageReader
from panpan.capabilities.web.search.choice import NoEngine
from panpan.capabilities.web.search.web_searcher import WebSearcher
from panpan.capabilities.web.web_fetch import WebFetchTool
from panpan.capabilities.web.web_pages import WebPages
from panpan.capabilities.web.web_search import WebSearchTool
from panpan.core.tool import Tool
from panpan.types.asking import UserAsker
from panpan.types.messages import Message
from panpan.types.plan import PlanAsker


def all_tools(
    ask_user: UserAsker | None = None,
    *,
    planning: Planning | None = None,
    ask_plan: PlanAsker | None = None,
    history: Callable[[], Sequence[Message]] | None = None,
    todos: TodoStore | None = None,
    subagents: Subagents | None = None,
    background: Background | None = None,
    worktrees: Callable[[], AgentWorktrees] | None = None,
    code: CodeIntelligence | None = None,
    searcher: WebSearcher | NoEngine | None = None,
    web_pages: WebPages | None = None,
    page_reader: PageReader | None = None,
    withholds: Callable[[Path, Path], bool] = lambda *_: False,
    packages: PackageSetup | None = None,
    data: DataSetup | None = None,
) -> list[Tool[Any]]:
    """Return a new instance of every tool, for one session.

    Args:
        ask_user: Puts questions of the model to the user; None: nobody is there to answer.
        planning: The plan mode of the session; None: there is no session, as where tools are only listed.
        ask_plan: Puts plans to the user; None: nobody is there to approve one.
        history: Returns all that was said in the session; None: there is none.
        subagents: Runs subagents; None: there is no session.
        background: The background tasks of the session; None: there are none.
        todos: Keeps the todo list of the session; None: there is none.
        worktrees: Returns who keeps the worktrees of subagents; None: there can be none.
        code: Asks language servers; None: there are none.
        searcher: Asks a search engine, or says why there is none; None: there is no session.
        web_pages: Asks for pages of the web; None: there is no session.
        page_reader: Answers from such pages; None: there is no model for it.
        withholds: Whether a rule speaks against showing what is in a file of the project whose root comes second.
        data: How data sets are asked for; None: there is no session.
        packages: Settings of package managers, and what is kept of their steps; None: there is no session.
    """
    return [
        ReadTool(),
        WriteTool(),
        EditTool(),
        MultiEditTool(),
        PatchTool(),
        RenameTool(withholds),
        NotebookEditTool(),
        LsTool(),
        GlobTool(),
        GrepTool(),
        LspTool(code, withholds),
        WebSearchTool(searcher),
        WebFetchTool(web_pages, page_reader),
        TaskTool(subagents),
        MergeWorktreeTool(worktrees),
        BashTool(background),
        EnvDoctorTool(withholds),
        PipTool(packages),
        UvTool(packages),
        CondaTool(packages),
        PixiTool(packages),
        DatasetDownloadTool(data, background),
        TaskOutputTool(background),
        TaskStopTool(background),
        AskUserQuestionTool(ask_user),
        EnterPlanModeTool(planning, has_user=ask_plan is not None),
        ExitPlanModeTool(planning, ask_plan),
        ReadHistoryTool(history),
        TodoWriteTool(todos),
    ]

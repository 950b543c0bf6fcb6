"""Project context: the place, git, the files, and the rules that are written for agents."""

from collections.abc import Iterable
from functools import partial

from panpan.capabilities.project_context.collect import ContextPlaces
from panpan.capabilities.project_context.nested_memory import NestedMemory
from panpan.capabilities.project_context.session_start import GivenContext, SessionStart, project_context
from panpan.core.hooks import Hook
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.command import Command
from panpan.system.files.canonical import user_home


class ProjectContext(Capability):
    """Tells each agent of the project."""

    name = "project_context"

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        session, setup = self.session, self.session.setup
        home, locations, root = user_home(), setup.locations, agent.context.paths.root
        if agent.is_main:
            withholds = partial(session.gate.keeps_from_context, root=setup.cwd)
            memory = NestedMemory(setup.cwd, locations.project_root, home, locations.home, session.warn, withholds)
            folders = setup.settings.additional_directories
            places = ContextPlaces(setup.cwd, locations.project_root, locations.home, home, folders, withholds)
            return SessionStart(places, memory, session.warn), memory
        top = root if root != setup.cwd else locations.project_root  # in a copy, its own or that of its parent
        withholds = partial(session.gate.withholds, root=root)
        identity = agent.identity
        given = GivenContext(
            lambda: project_context(session.conversation), identity.worktree, is_made_anew=identity.has_new_worktree
        )
        return given, NestedMemory(root, top, home, locations.home, session.warn, withholds)

    @classmethod
    def commands(cls) -> Iterable[Command]:
        from panpan.capabilities.project_context.memory_command import MEMORY_COMMANDS

        return MEMORY_COMMANDS

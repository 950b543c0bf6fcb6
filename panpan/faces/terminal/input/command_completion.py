"""A command among the completions."""

from prompt_toolkit.completion import Completion


class CommandCompletion(Completion):
    """What a command is completed to.

    Args:
        name: Without the slash.
        typed: What is there of it, without the slash.
        arguments: What may stand behind it, such as "[file]".
        detail: What it does.
        needs_arguments: Whether it does nothing without them.
        is_missing: Whether its service is not there yet.
    """

    def __init__(
        self, name: str, typed: str, *, arguments: str, detail: str, needs_arguments: bool, is_missing: bool
    ) -> None:
        text = f"/{name} " if arguments else f"/{name}"
        label = f"/{name} {arguments}".rstrip()
        super().__init__(text, start_position=-len(typed) - 1, display=label, display_meta=detail)
        self.can_run = not needs_arguments
        """Whether it does something as it stands."""
        self.is_missing = is_missing

"""Keeps the keys of model providers and search engines out of tool results, and so out of the log and of requests.

The rule: a result says where a key was taken out, since the file still holds it. Edits are literal on the file, so that
the rest of it can be changed as before.
"""

from panpan.core.hooks import Hook, ToolCall
from panpan.system.text.known_keys import KnownKeys
from panpan.types.content import ResultContent, TextBlock
from panpan.types.display import DiffDisplay, Display, PlanDisplay, SummaryDisplay, TodoDisplay
from panpan.types.tool import Output

_NOTE = (
    "[panpan put [redacted] in place of a key that it uses itself, which stays where it is: change other places with "
    "Edit, and do not write [redacted] over it]"
)


class KeysInResults(Hook):
    """Replaces keys in what a tool answers.

    Args:
        keys: Those to replace.
    """

    def __init__(self, keys: KnownKeys) -> None:
        self._keys = keys

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        blocks = tuple(self._redacted(block) for block in output.blocks)
        display = self._redacted_display(output.display)
        if blocks != output.blocks:
            return Output((*blocks, TextBlock(text=_NOTE)), display, is_error=output.is_error)
        if display != output.display:
            return Output(output.content, display, is_error=output.is_error)
        return output

    def _redacted(self, block: ResultContent) -> ResultContent:
        if not isinstance(block, TextBlock):
            return block
        text = self._keys.redact(block.text)
        return block if text == block.text else TextBlock(text=text)

    def _redacted_display(self, display: Display | None) -> Display | None:
        redact = self._keys.redact
        match display:
            case SummaryDisplay(text=text):
                return SummaryDisplay(text=redact(text))
            case DiffDisplay(files=files, notes=notes):
                return DiffDisplay(
                    files=tuple(
                        file.model_copy(update={"path": redact(file.path), "diff": redact(file.diff)}) for file in files
                    ),
                    notes=tuple(map(redact, notes)),
                )
            case PlanDisplay():
                return display.model_copy(update={"text": redact(display.text), "summary": redact(display.summary)})
            case TodoDisplay() | None:  # a list holds what the model's own call says
                return display

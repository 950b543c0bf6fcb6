"""Content blocks, which make up messages, and displays, which faces show as results.

Names and fields are those of the Messages API (https://platform.claude.com/docs/en/api/messages), which users, logs and
other programs already know. The file of a provider with another format translates them.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from panpan.types.role import Role


class Frozen(BaseModel):
    """Base of everything that is kept or crosses a border: immutable, and strict about its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)  # not all are used at the start


class TextBlock(Frozen):
    """Plain text, of the user or of the model."""

    type: Literal["text"] = "text"
    text: str
    audience: Literal["model"] | None = Field(default=None, exclude_if=lambda audience: audience is None)
    """"model" for text that people do not see, such as advice on the next call; None if everybody reads it."""


class ThinkingBlock(Frozen):
    """Thinking of the model before its answer; sent back unchanged to the model that wrote it."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str = ""
    """The provider's signature of the text; empty if the provider has none."""


class RedactedThinkingBlock(Frozen):
    """Thinking that the provider encrypted; opaque, and sent back as it came."""

    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: str


class ToolUseBlock(Frozen):
    """The model asks for a tool; answered by exactly one tool_result."""

    type: Literal["tool_use"] = "tool_use"
    id: str
    """Unique in the conversation."""
    name: str
    input: dict[str, Any]
    """The arguments; empty if they did not arrive as a JSON object."""
    input_error: str | None = None
    """Reason why the arguments could not be read. A call with this set never runs; this text is its result."""


class Base64Source(Frozen):
    """Bytes that travel inside a message."""

    type: Literal["base64"] = "base64"
    media_type: str
    data: str


class ImageBlock(Frozen):
    """A picture."""

    type: Literal["image"] = "image"
    source: Base64Source


class DocumentBlock(Frozen):
    """A document that the model reads itself, such as a PDF."""

    type: Literal["document"] = "document"
    source: Base64Source
    title: str | None = None


ResultContent: TypeAlias = Annotated[TextBlock | ImageBlock | DocumentBlock, Field(discriminator="type")]
"""A block in the answer to a tool use."""


class ToolResultBlock(Frozen):
    """The answer to one tool_use."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: tuple[ResultContent, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """All of its text, pictures and documents left out."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def text_for_people(self) -> str:
        """All of its text that is not only for the model."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock) and not block.audience)


UserContent: TypeAlias = Annotated[TextBlock | ImageBlock | DocumentBlock, Field(discriminator="type")]
"""A block in a message of the user."""

AssistantContent: TypeAlias = Annotated[
    TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock, Field(discriminator="type")
]
"""A block in a reply of the model."""


class Span(Frozen):
    """A piece of text with one meaning."""

    text: str
    role: Role | None = None
    without_hues: str = ""
    """Text to show in its place if colours do not tell the roles apart; empty for the same text."""


class TextDisplay(Frozen):
    """Words, of any origin; faces wrap them."""

    type: Literal["text"] = "text"
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        """The words alone."""
        return "".join(span.text for span in self.spans)


class TableDisplay(Frozen):
    """Rows of cells. Two columns without a header are names and their values."""

    type: Literal["table"] = "table"
    rows: tuple[tuple[str, ...], ...]
    """Rows of equal length, which is that of the header if there is one."""
    header: tuple[str, ...] = ()


class FileDiff(Frozen):
    """One file before and after, as a unified diff."""

    path: str
    """Path as the user sees it: relative to the workspace if the file is inside."""
    diff: str
    """Unified diff with three lines of context; empty if no lines changed."""
    added: int
    """Lines added."""
    removed: int
    """Lines removed."""
    is_new: bool = False
    """True if the file did not exist before."""
    is_deleted: bool = False
    """True if the file does not exist any more."""
    is_cut: bool = False
    """True if `diff` leaves out a part of the change."""
    replaced_of: int = 0
    """Lines that the file had, if the change replaces many and at least half of them; else 0."""


class DiffDisplay(Frozen):
    """The files that a call changed."""

    type: Literal["diff"] = "diff"
    files: tuple[FileDiff, ...]
    notes: tuple[str, ...] = ()
    """Consequences of the change, one line each."""

    @property
    def is_cut(self) -> bool:
        """True if not all of the change is in it."""
        return any(file.is_cut for file in self.files)


class SummaryDisplay(Frozen):
    """One line that says what a call found or did, or why it failed, such as "248 lines" or "a.py is binary"."""

    type: Literal["summary"] = "summary"
    text: str


class RejectedDisplay(Frozen):
    """A call that the user did not allow, with those of its changes that they were shown."""

    type: Literal["rejected"] = "rejected"
    text: str = "Rejected by you"
    files: tuple[FileDiff, ...] = ()


class PlanDisplay(Frozen):
    """A plan that the user approved or not, or that is the result of a run in which nobody is there to approve it."""

    type: Literal["plan"] = "plan"
    text: str
    """Markdown."""
    summary: str
    """Outcome of the plan, on one line."""
    is_result: bool = False
    """True if the plan is the result of the run, in place of the model's answer."""


ItemStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


class ChecklistItem(Frozen):
    """One thing to do."""

    content: str
    """The task as an instruction: "Run the tests"."""
    active_form: str
    """The task in progress: "Running the tests"."""
    status: ItemStatus = "pending"
    id: str = ""
    """Stays the same while the content does; empty for an item that is only shown."""


class ChecklistDisplay(Frozen):
    """A checklist, whole."""

    type: Literal["todos"] = "todos"
    todos: tuple[ChecklistItem, ...]
    """Its items; logs know them by this name."""


Display: TypeAlias = Annotated[
    TextDisplay | DiffDisplay | ChecklistDisplay | TableDisplay | SummaryDisplay | RejectedDisplay | PlanDisplay,
    Field(discriminator="type"),
]
"""Shape that a tool result or a command shows. A summary is one line of text, and a plan is text with its verdict."""

StatusItem: TypeAlias = TextDisplay | ChecklistDisplay
"""Shape that a feature shows as long as it counts: a few words, such as "2 tasks running", or a checklist."""


def for_model(words: str) -> TextBlock:
    """Return words that only the model reads."""
    return TextBlock(text=words, audience="model")


def text(words: str, role: Role | None = None) -> TextDisplay:
    """Return words of one meaning."""
    return TextDisplay(spans=(Span(text=words, role=role),))


def table(rows: Iterable[Sequence[str]], header: Sequence[str] = ()) -> TableDisplay:
    """Return a table."""
    return TableDisplay(rows=tuple(map(tuple, rows)), header=tuple(header))


def checklist_counts(items: Sequence[ChecklistItem]) -> str:
    """Return the progress of a list, as "2 of 5 done", or "nothing to do" for an empty one."""
    done = sum(item.status == "completed" for item in items)
    return f"{done} of {len(items)} done" if items else "nothing to do"

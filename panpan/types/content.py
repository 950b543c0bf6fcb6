"""Content blocks, of which messages are made, and displays, of which faces show results.

Names and fields are those of the Messages API (https://platform.claude.com/docs/en/api/messages), which users, logs and
other programs already know; each provider's own file translates them where its wire says it differently.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from panpan.types.role import Role


class Frozen(BaseModel):
    """Base of everything that is kept or crosses a border: immutable, and strict about its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TextBlock(Frozen):
    """Plain text, of the user or of the model."""

    type: Literal["text"] = "text"
    text: str
    audience: Literal["model"] | None = Field(default=None, exclude_if=lambda audience: audience is None)
    """"model" for what no person is shown, such as advice on what to call next; None: everybody reads it."""


class ThinkingBlock(Frozen):
    """What the model thought before it answered; sent back unchanged to the model that thought it."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str = ""
    """The provider's seal over the text; empty where the provider has none."""


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
    """The arguments; empty where they did not arrive as a JSON object."""
    input_error: str | None = None
    """Why the arguments could not be read. A call with this set is never run; it is answered with this text."""


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
"""What a tool_result may hold."""


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
        """The same without what is only for the model."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock) and not block.audience)


UserContent: TypeAlias = Annotated[TextBlock | ImageBlock | DocumentBlock, Field(discriminator="type")]
"""What a user message may hold."""

AssistantContent: TypeAlias = Annotated[
    TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock, Field(discriminator="type")
]
"""What a reply of the model may hold."""


class Span(Frozen):
    """A piece of text with one meaning."""

    text: str
    role: Role | None = None
    without_hues: str = ""
    """Text to show in its place where roles have no colours that tell them apart; empty: the same."""


class TextDisplay(Frozen):
    """Words, of any origin; they are wrapped where they are shown."""

    type: Literal["text"] = "text"
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        """The words alone."""
        return "".join(span.text for span in self.spans)


class TableDisplay(Frozen):
    """Rows of cells. Two columns without a header are names and what belongs to each."""

    type: Literal["table"] = "table"
    rows: tuple[tuple[str, ...], ...]
    """Each as long as the others, and as the header if there is one."""
    header: tuple[str, ...] = ()


class FileDiff(Frozen):
    """One file before and after, as a unified diff."""

    path: str
    """As shown to the user: relative to the workspace where it lies inside."""
    diff: str
    """Unified diff with three lines of context; empty where nothing that has lines changed."""
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
    """Lines that the file had, where the change replaces many and at least half of them; else 0."""


class DiffDisplay(Frozen):
    """The files that a call changed."""

    type: Literal["diff"] = "diff"
    files: tuple[FileDiff, ...]
    notes: tuple[str, ...] = ()
    """What came of the change, a line each."""

    @property
    def is_cut(self) -> bool:
        """True if not all of the change is in it."""
        return any(file.is_cut for file in self.files)


class SummaryDisplay(Frozen):
    """One line that says what a call found or did, or why it failed, such as "248 lines" or "a.py is binary"."""

    type: Literal["summary"] = "summary"
    text: str


class RejectedDisplay(Frozen):
    """A call that the user did not allow, with what it would have changed as far as they were shown that."""

    type: Literal["rejected"] = "rejected"
    text: str = "Rejected by you"
    files: tuple[FileDiff, ...] = ()


class PlanDisplay(Frozen):
    """A plan that the user approved or not, or that is the result of a run in which nobody is there to approve it."""

    type: Literal["plan"] = "plan"
    text: str
    """Markdown."""
    summary: str
    """What became of it, on one line."""
    is_result: bool = False
    """True if it is what the run was for, in place of the model's answer."""


ItemStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


class ChecklistItem(Frozen):
    """One thing to do."""

    content: str
    """Order to do it: "Run the tests"."""
    active_form: str
    """The same while it is done: "Running the tests"."""
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
    """Return how far a list has come, as "2 of 5 done"; where it is empty, that."""
    done = sum(item.status == "completed" for item in items)
    return f"{done} of {len(items)} done" if items else "nothing to do"

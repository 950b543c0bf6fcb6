"""Mentions: files that the user names with an `@` go along with what they say.

The rule: a mention shows the model what Read or LS would show it, through their own code, and opens nothing more. What
lies outside the workspace, may hold secrets or is denied by a rule stays out, and the user is told.
"""

import re
from collections.abc import Collection, Sequence
from contextlib import aclosing
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from anyio import to_thread
from pydantic import BaseModel

from panpan.config.known_secrets import provider_keys
from panpan.core.hooks import Hook, ToolCall
from panpan.core.tool import FileViewer, FolderViewer, Tool, ToolContext
from panpan.errors import ToolError
from panpan.session.capability import Capability
from panpan.system.files.paths import Location, PathResolver
from panpan.system.text.redact import KnownKeys
from panpan.system.text.terminal_text import printable
from panpan.types.attachments import Mention, MentionableNames, Reading, find_mentions
from panpan.types.content import TextBlock, UserContent
from panpan.types.dataclass import dataclass
from panpan.types.events import Output
from panpan.types.messages import UserMessage
from panpan.types.pattern import compile_late
from panpan.types.permission import Deny


class Mentions(Capability):
    """Adds the files behind an `@`, and warns of each that stays out."""

    name = "mentions"

    async def prepare_message(self, message: UserMessage) -> UserMessage:
        session = self.session
        others = session.find(MentionableNames)
        keys = provider_keys(session.setup.env, session.settings, session.setup.loaded.keys)
        message, notes = await with_mentions(
            message,
            session.tool_context,
            Viewers(session.find(FileViewer), session.find(FolderViewer)),
            agents=() if others is None else others.mentionable_names,
            keys=keys,
            gate=session.gate,
        )
        for note in notes:
            session.warn(note)
        return message


MAX_ATTACHMENTS = 50
"""Most attachments of one prompt."""
MAX_TEXT_CHARS = 200_000
"""Characters of attached text after which nothing more is attached."""
MAX_MEDIA_CHARS = 15_000_000
"""The same for pictures, in base64; the Messages API takes 32 MB for a whole request."""

_OUR_TAGS = compile_late(r"<(?=\s{0,9}/?\s{0,9}attached_(?:file|folder)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Viewers:
    """Tools that show files and folders; None: the session has none."""

    files: FileViewer | None
    folders: FolderViewer | None

    def call_for(self, reading: Reading, *, is_folder: bool) -> tuple[Tool[Any], BaseModel]:
        if is_folder and self.folders is not None:
            return self.folders.folder_call(reading.path)
        if not is_folder and self.files is not None:
            first, last = reading.first, reading.last
            return self.files.file_call(reading.path, None if first is None or last is None else (first, last))
        raise ToolError(f"no tool shows {'folders' if is_folder else 'files'} here")


async def with_mentions(
    prompt: str | UserMessage,
    ctx: ToolContext,
    viewers: Viewers,
    *,
    agents: Collection[str] = (),
    keys: KnownKeys | None = None,
    gate: Hook | None = None,
) -> tuple[UserMessage, Sequence[str]]:
    """Return the prompt with what it mentions, and one sentence for each mention that stays out.

    Args:
        prompt: The user's message. Mentions are looked for in the part that the user typed, never in data after it.
        ctx: As for a tool; a file that is attached counts as read.
        viewers: Tools that show what is mentioned.
        agents: Names behind an @ that mean agents and no files.
        keys: Keys that are redacted in the files, as in tool results.
        gate: Asked about each file as about a call of Read or LS. Only what it denies stays out: the user has named
            the file, so they are not asked.
    """
    message = UserMessage.of(prompt) if isinstance(prompt, str) else prompt
    attachments = _Attachments(ctx, viewers, keys or KnownKeys(), gate)
    for mention in find_mentions(message.typed):
        if mention.name not in agents:
            await attachments.add(mention)
    content = (*message.content, *attachments.blocks)
    return message.model_copy(update={"content": content}), attachments.all_notes()


@dataclass(frozen=True, slots=True)
class _Place:
    reading: Reading
    location: Location
    is_folder: bool
    exists: bool


@dataclass(slots=True)
class _Attachments:
    ctx: ToolContext
    viewers: Viewers
    keys: KnownKeys
    gate: Hook | None
    blocks: list[UserContent] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: int = 0
    _done: set[tuple[Path, int | None, int | None]] = field(default_factory=set)

    def all_notes(self) -> Sequence[str]:
        if not self.left_out:
            return self.notes
        what = "1 more mention was" if self.left_out == 1 else f"{self.left_out:,} more mentions were"
        return [*self.notes, f"{what} not attached, since one prompt has no room for so much"]

    async def add(self, mention: Mention) -> None:
        """Attach a mention, or note the reason why not."""
        if self._is_full():
            self.left_out += 1
            return
        try:
            # Show the place that was judged, even if the name leads elsewhere by now.
            ctx = replace(self.ctx, paths=self.ctx.paths.for_call())
            place = await to_thread.run_sync(_place, mention, ctx.paths)
            if place is None:
                return
            ctx.paths.remember(ctx.paths.absolute(place.reading.path), place.location)
            key = (place.location.path, place.reading.first, place.reading.last)
            if key in self._done:
                return
            self._done.add(key)
            self._attach(place, await self._output(place, ctx))
        except ToolError as exc:
            # the part behind the semicolon is advice for a model
            self.notes.append(f"@{printable(mention.name)} was not attached: {printable(str(exc).partition('; ')[0])}")

    def _is_full(self) -> bool:
        text = sum(len(block.text) for block in self.blocks if isinstance(block, TextBlock))
        media = sum(len(block.source.data) for block in self.blocks if not isinstance(block, TextBlock))
        return len(self._done) >= MAX_ATTACHMENTS or text >= MAX_TEXT_CHARS or media >= MAX_MEDIA_CHARS

    async def _output(self, place: _Place, ctx: ToolContext) -> Output:
        _require_open(place, ctx.paths)
        tool, args = self.viewers.call_for(place.reading, is_folder=place.is_folder)
        if self.gate is not None:
            call = await ToolCall.of("mention", tool, args, args.model_dump(mode="json"), ctx)
            decision = await self.gate.before_tool(call)
            if isinstance(decision, Deny):
                raise ToolError(decision.reason.text)
        async with aclosing(tool.run(args, ctx)) as yields:
            async for item in yields:
                if isinstance(item, Output):
                    return item
        raise ToolError("it showed nothing")

    def _attach(self, place: _Place, output: Output) -> None:
        shown = printable(self.ctx.paths.shown(place.location.path)) or "."
        tag = "attached_folder" if place.is_folder else "attached_file"
        body = _OUR_TAGS.sub("&lt;", self.keys.redact(output.text))
        name = shown.replace('"', "&quot;")
        self.blocks.append(TextBlock(text=f'<{tag} path="{name}">\n{body}\n</{tag}>'))
        self.blocks += [block for block in output.blocks if not isinstance(block, TextBlock)]


def _place(mention: Mention, paths: PathResolver) -> _Place | None:
    """Return the place of a mention; None: it means no file."""
    unusable: ToolError | None = None
    places: list[_Place] = []
    for reading in mention.readings:
        try:
            location = paths.locate(reading.path)
        except ToolError as exc:
            unusable = exc
            continue
        place = _Place(reading, location, _is_folder(location.path), _exists(location.path))
        if place.exists:
            return place
        places.append(place)
    if not mention.is_path:
        return None
    if not places:
        raise unusable or ToolError("there is no such file")
    return places[-1]


def _require_open(place: _Place, paths: PathResolver) -> None:
    try:
        paths.resolve(place.reading.path, access="read")
    except ToolError as exc:
        if place.location.is_secret:
            raise ToolError("it may hold secrets, which the model sees only if you allow it when it asks") from exc
        raise ToolError(f"it is outside the workspace {paths.root}") from exc
    if not place.exists:
        raise ToolError("it does not exist")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder on the way may be unreadable
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False

"""DatasetDownload: first what a download would bring, then, once the user has said yes to exactly that, the download.

The rule: what is downloaded is a plan that was prepared in this session. The question names all of it, and where a
server has something else by then, nothing of that is taken.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from anyio import current_time, to_thread
from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.datasets.download_plan import DataConfig, DownloadPlan
from panpan.core.background import Background, JobEnd
from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.system.text.terminal_text import clean_line
from panpan.system.web.url_guard import Authority, PlainUrl
from panpan.types.content import SummaryDisplay
from panpan.types.events import Output, Progress, ToolYield

if TYPE_CHECKING:
    from panpan.capabilities.datasets.download_job import DownloadJob

TIMEOUT_S = 4 * 3600.0
"""Time limit of a download in the foreground."""
MAX_PLANS = 50
_MOST_PATHS = 200
"""Files of a plan that are looked at at once; the permission gate looks at the others in a thread."""


class DatasetDownloadInput(BaseModel):
    """Arguments of DatasetDownload."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    action: Literal["prepare", "download"]
    source: str = Field(default="", max_length=2000, description="Address, or hf://datasets/owner/name@revision")
    folder: str = Field(default="data", description="Where it goes")
    files: tuple[str, ...] = Field(default=(), max_length=100, description="Of hf://: patterns; else all")
    sha256: str = Field(default="", pattern=r"^([0-9a-fA-F]{64})?$", description="If known")
    unpack: bool = False
    plan: str = Field(default="", max_length=20, description="To download; else the newest")
    run_in_background: bool = False


class DatasetDownloadTool(Tool[DatasetDownloadInput]):
    """Bring data sets."""

    name = "DatasetDownload"
    input_model = DatasetDownloadInput
    timeout_s: ClassVar[float | None] = TIMEOUT_S

    def __init__(
        self,
        setup: DataConfig | None = None,
        background: Background | None = None,
        *,
        pause: Callable[[int], float] | None = None,
        clock: Callable[[], float] = current_time,
    ) -> None:
        self._setup = setup
        self._background = background
        self._pause = pause
        self._clock = clock
        self._plans: dict[str, DownloadPlan] = {}
        self._asked: dict[str, str] = {}
        """Ids of the plans that the user was asked about, by call."""

    def size_of(self, args: DatasetDownloadInput) -> int | None:
        """Return the bytes that a call would download; None where that is not known, or it downloads nothing."""
        plan = self._found(args) if args.action == "download" else None
        return None if plan is None else plan.size

    def may_run_in_parallel(self, args: DatasetDownloadInput) -> bool:
        return args.action == "prepare"

    def title(self, args: DatasetDownloadInput) -> str:
        if args.action == "prepare":
            return f"look at {args.source}"
        plan = self._found(args)
        where = " (in the background)" if args.run_in_background else ""
        return f"download {plan.source if plan is not None else args.plan}{where}"

    def question(self, args: DatasetDownloadInput) -> str:
        if args.action == "prepare":
            return f"Look up {clean_line(args.source)}?"
        plan = self._found(args)
        return f"Download {plan.summary if plan is not None else clean_line(args.plan)}?"

    async def effects(self, args: DatasetDownloadInput, ctx: ToolContext) -> Effects:
        if args.action == "prepare":
            return Effects(urls=(self._first_address(args),))
        plan = self._planned(args)
        places = [plan.folder, *plan.unpacked, *(one.target for one in plan.wanted)]
        # The user allows one download, as the question describes it.
        return Effects(writes=list(map(str, places)), urls=plan.hosts, asks_web=True, is_for_once=True)

    async def describe(self, args: DatasetDownloadInput, ctx: ToolContext) -> str:
        if args.action == "prepare":
            _require_source(args)
            plain = self._present.client.plain(self._first_address(args))
            return f"it asks {Authority(plain.host, plain.address, plain.port)} what it is, and downloads nothing"
        plan = self._planned(args)
        self._asked[ctx.tool_use_id] = plan.id
        return plan.line()

    async def run(self, args: DatasetDownloadInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        if args.action == "prepare":
            yield await self._prepare(args, ctx)
            return
        from panpan.capabilities.datasets.preparation import require_space, still_free  # few sessions download anything

        plan = self._planned(args)
        if self._asked.pop(ctx.tool_use_id, plan.id) != plan.id:
            raise ToolError(
                "another download was prepared since the user agreed to one", advice="call download with its id"
            )
        plan = await to_thread.run_sync(still_free, plan)
        require_space(plan)
        for place in (*plan.unpacked, *(one.target for one in plan.wanted)):
            if ctx.paths.resolve(str(place), access="write") != place:  # a link may have appeared since
                raise ToolError(f"{ctx.paths.shown(place)} leads elsewhere now; prepare the download again")
        if args.run_in_background:
            yield self._start(plan, ctx)
            return
        work = self._make_job(plan)
        async with aclosing(work.steps()) as lines:
            async for line in lines:
                yield Progress(f"{line}\n")
        came = work.report if len(plan.files) == 1 else f"{len(plan.files)} files in {plan.folder_label}"
        yield Output(work.report, SummaryDisplay(text=came))

    async def _prepare(self, args: DatasetDownloadInput, ctx: ToolContext) -> Output:
        _require_source(args)
        from panpan.capabilities.datasets.preparation import make_plan

        plan = await make_plan(
            self._present,
            ctx,
            partial(self._allow, (self._first_address(args),)),
            source=args.source,
            folder=args.folder,
            patterns=args.files,
            sha256=args.sha256.lower(),
            unpack=args.unpack,
        )
        self._plans.pop(plan.id, None)
        self._plans[plan.id] = plan
        while len(self._plans) > MAX_PLANS:
            del self._plans[next(iter(self._plans))]
        if not plan.wanted and not plan.unpacked:
            return Output(f"nothing to download: all of it is in {plan.folder_label}, with the right checksums")
        text = (
            f"plan {plan.id}: {plan.text()}\nthe user could run himself: {plan.command()}\n"
            f"nothing was downloaded yet; the user is asked when you call download with plan {plan.id}"
        )
        return Output(text, SummaryDisplay(text=plan.line()))

    def _start(self, plan: DownloadPlan, ctx: ToolContext) -> Output:
        if self._background is None:
            raise ToolError("there are no background tasks here; download it in the foreground")

        async def job(write: Callable[[str], None]) -> JobEnd:
            work = self._make_job(plan)
            async with aclosing(work.steps()) as lines:
                async for line in lines:
                    write(f"{line}\n")
            write(f"{work.report}\n")
            return JobEnd(f"Downloaded into {plan.folder_label}:\n{work.report}", is_error=False)

        title = f"download {plan.source}"
        task = self._background.start_job(
            kind="download", title=title, tool_use_id=ctx.tool_use_id, agent_id="", job=job
        )
        text = (
            f"the download runs in the background as task {task.id}; you are told when it ends, and TaskOutput shows "
            "how far it is"
        )
        return Output(text, SummaryDisplay(text=f"in the background as task {task.id}"))

    def _make_job(self, plan: DownloadPlan) -> "DownloadJob":
        from panpan.capabilities.datasets.download_job import (
            MAX_FRUITLESS_TRIES,
            DownloadJob,
            Transfer,
            usual_pause,
        )
        from panpan.system.web.download import RetryPolicy

        setup = self._present
        transfer = Transfer(
            setup.client,
            partial(self._allow, plan.hosts),
            token=setup.token,
            max_bytes=setup.max_bytes,
            retry=RetryPolicy(MAX_FRUITLESS_TRIES, self._pause or usual_pause, self._clock),
        )
        return DownloadJob(plan, transfer, replace(setup.unpack_limits))

    def _planned(self, args: DatasetDownloadInput) -> DownloadPlan:
        plan = self._found(args)
        if plan is None:
            named = f" {args.plan!r}" if args.plan else ""
            raise ToolError(
                f"there is no plan{named}", advice="call prepare first, which also finds what an earlier download left"
            )
        return plan

    def _first_address(self, args: DatasetDownloadInput) -> str:
        """Return the address that is asked first when a download is prepared."""
        from panpan.capabilities.datasets.preparation import is_hub_source  # few sessions download anything

        return self._present.hub if is_hub_source(args.source) else args.source

    def _found(self, args: DatasetDownloadInput) -> DownloadPlan | None:
        """Return the plan that a call speaks of; by the question the user knows which it is."""
        return self._plans.get(args.plan) if args.plan else next(reversed(self._plans.values()), None)

    def _allow(self, agreed: Sequence[str], plain: PlainUrl) -> None:
        """Refuse an address that the settings close, or of which a rule speaks that holds for none agreed to."""
        if refusal := self._present.domains.refusal(plain.host):
            raise ToolError(f"{plain.url} is not asked for: {refusal} by the settings")
        rules = [self._present.stricter_rule(address, plain.url) for address in agreed]
        if all(rules):
            raise ToolError(
                f"it redirects to {plain.host}, which a rule covers: {rules[0]}; to go on, prepare {plain.url}"
            )

    @property
    def _present(self) -> DataConfig:
        if self._setup is None:
            raise ToolError("there is no session that could download anything")
        return self._setup


def _require_source(args: DatasetDownloadInput) -> None:
    if not args.source:
        raise ToolError("prepare needs source: an address, or hf://datasets/owner/name")

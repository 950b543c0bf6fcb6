"""Make the pictures of the REPL in docs/images/, each an SVG; the one in the README is animated.

    .venv/bin/python scripts/make_pictures.py [NAME…]

The installed command runs in tmux (which has to be installed) on the small project of the demo, and talks to the
scripted model server of the tests. The replies of the model are written here; the tools and the screen are real. Times
on the screen are those of the machine, so that a picture changes a little each time it is made.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from threading import Event, Thread

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for the model server and the terminal of the tests

from rich.ansi import AnsiDecoder  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.terminal_theme import TerminalTheme  # noqa: E402

from tests.model_server import Reply, Step, Text, Thinking, Tokens, ToolCall, say, serving  # noqa: E402
from tests.terminal_emulator import Tmux  # noqa: E402

IMAGES = ROOT / "docs" / "images"
HOME = Path("/tmp/ada")
"""Home folder of the user in the pictures: it is on the screen, so it is short and always the same."""
COLUMNS = 96
LOOK_S = 1.0
"""Seconds before keys are sent to a question, which takes them after a moment on the screen."""
FRAME_S = 0.25
"""Seconds between two captures of an animated screen."""
SHOWN_S = 0.6
"""Seconds for which each of its screens is shown, except the last."""
LAST_S = 5.0
"""Seconds for which the last screen is shown."""
SETTLE_S = 1.0
"""Seconds without a change before the picture is taken; at most 5 s, since a spinner always moves."""

_COLOURS = [(240, 113, 120), (152, 195, 121), (229, 192, 123), (97, 175, 239), (198, 120, 221), (86, 182, 194)]
THEME = TerminalTheme(
    (24, 26, 31),
    (221, 224, 230),
    [(63, 68, 81), *_COLOURS, (221, 224, 230)],
    [(110, 116, 131), *_COLOURS, (255, 255, 255)],
)

# As rich's own, without the font that it loads from another site: an <img> loads nothing.
SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
    <!-- made by scripts/make_pictures.py -->
    <style>
    .{unique_id}-matrix {{
        font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
        font-size: {char_height}px;
        line-height: {line_height}px;
        font-variant-east-asian: full-width;
    }}
    .{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
    {styles}
    </style>
    <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
    </defs>
    {chrome}
    <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
    </g>
</svg>
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """Script of a picture, and the moment at which it is taken."""

    name: str
    title: str
    script: Callable[[], Sequence[Step]]
    play: Callable[[Tmux], None]
    """Plays up to that moment."""
    flags: Sequence[str] = ()
    rows: int = 36
    is_moving: bool = False
    """True to show all screens one after the other, and not only the last one."""


# What the model says

TESTS = "python3 -m unittest -q"
FIX = {
    "file_path": "schedule.py",
    "old_string": "    progress = (step - warmup_steps) / total_steps\n",
    "new_string": "    progress = (step - warmup_steps) / (total_steps - warmup_steps)\n",
}
EXPLAINED = """\
The decay was spread over `total_steps`, although only what is left after the warm-up belongs to it:

- **before**: the last step was at 80 % of the cosine, so the rate never reached `min_lr`
- **now**: `progress` goes from 0 to 1

```python
def progress(step, total_steps, warmup_steps):
    return (step - warmup_steps) / (total_steps - warmup_steps)  # from 0 to 1
```

All three tests pass.
"""
PYTEST = "python3 -m pytest -q"
CLAIMED = "The decay now ends at the last step. All tests pass, and training works on GPU."
PLAN = """\
## Let the decay end at the last step

`schedule.py` divides by all steps, although the warm-up has taken some; the README is right.

1. Let `progress` run from 0 to 1 over the steps after the warm-up.
2. Add a test for `warmup_steps=0`, which nothing covers.
3. Run all tests.
"""


def _used(tokens: int) -> Tokens:
    return Tokens(input=300, cache_read=tokens, output=120)


def _look() -> Step:
    calls = (ToolCall("Read", {"file_path": "schedule.py"}), ToolCall("Read", {"file_path": "README.md"}))
    return Reply((Text("I look at the schedule first."), *calls), tokens=_used(11_000))


def _test(command: str = TESTS) -> Step:
    return Reply((ToolCall("Bash", {"command": command}),), tokens=_used(12_000))


def _fix() -> Step:
    thinking = Thinking("The divisor counts the warm-up a second time.")
    return Reply((thinking, Text("The divisor is wrong."), ToolCall("Edit", FIX)), tokens=_used(14_000))


def _plan() -> Step:
    return Reply((Text("I know enough for a plan."), ToolCall("ExitPlanMode", {"plan": PLAN})), tokens=_used(12_000))


# What the user does


def _ask(tmux: Tmux, prompt: str) -> None:
    tmux.wait_for("Ask panpan to do something")
    tmux.type(prompt)
    tmux.wait_for(prompt)
    tmux.send("Enter")


def _play_turn(tmux: Tmux) -> None:
    _ask(tmux, "the last step misses the minimum rate; find out why and fix it")
    tmux.wait_for("All three tests pass.")


def _play_question(tmux: Tmux) -> None:
    _ask(tmux, "the last step misses the minimum rate; find out why and fix it")
    tmux.wait_for("total_steps - warmup_steps")
    time.sleep(LOOK_S)


def _play_diff(tmux: Tmux) -> None:
    _play_question(tmux)
    tmux.send("y")
    tmux.wait_for("The decay now ends where it should.")


def _play_verified(tmux: Tmux) -> None:
    _ask(tmux, "the last step misses the minimum rate; find out why and fix it")
    tmux.wait_for("unverified")


def _play_output(tmux: Tmux) -> None:
    _ask(tmux, "run the long check")
    tmux.wait_for("step 600")
    tmux.send("C-o")
    tmux.wait_for("step 575")
    tmux.type("and then plot the curve")
    tmux.wait_for("plot the curve")


def _play_plan(tmux: Tmux) -> None:
    tmux.wait_for("Ask panpan to do something")
    for _ in range(3):  # default, accept edits, auto
        tmux.send("BTab")
    tmux.wait_for("plan mode")
    _ask(tmux, "how would you fix the schedule?")
    tmux.wait_for("Approve this plan?")
    time.sleep(LOOK_S)


def _play_story(tmux: Tmux) -> None:
    tmux.wait_for("Ask panpan to do something")
    for word in PROMPT.split(" "):
        tmux.type(f"{word} ")
        tmux.wait_for(word)
    tmux.send("Enter")
    tmux.wait_for("Run this command?")
    time.sleep(LOOK_S)
    tmux.send("m")
    time.sleep(LOOK_S)
    tmux.send("m")
    tmux.wait_for("All three tests pass.")


PROMPT = "the last step misses the minimum rate; find out why and fix it"
LONG_CHECK = 'for step in $(seq 0 25 600); do echo "step $step  rate ok"; done; sleep 30'

SCENES = (
    Scene(
        "turn",
        "panpan: a whole turn",
        lambda: [_look(), _test(), _fix(), _test(), say(EXPLAINED, tokens=_used(15_000))],
        _play_turn,
        ("--permission-mode", "acceptEdits", "--allowedTools", f"Bash({TESTS})"),
        rows=60,
    ),
    Scene(
        "story",
        "panpan: a turn as it goes",
        lambda: [_look(), _test(), _fix(), _test(), say(EXPLAINED, tokens=_used(15_000))],
        _play_story,
        rows=34,
        is_moving=True,
    ),
    Scene(
        "question",
        "panpan: a question before a file is changed",
        lambda: [_look(), _fix()],
        _play_question,
        rows=44,
    ),
    Scene(
        "diff",
        "panpan: an edit",
        lambda: [_look(), _fix(), say("The decay now ends where it should.", tokens=_used(15_000))],
        _play_diff,
        rows=44,
    ),
    Scene(
        "verified",
        "panpan: an answer, and what of it commands have shown",
        lambda: [_look(), _fix(), _test(PYTEST), say(CLAIMED, tokens=_used(15_000))],
        _play_verified,
        ("--permission-mode", "acceptEdits", "--allowedTools", f"Bash({PYTEST})"),
        rows=60,
    ),
    Scene(
        "output",
        "panpan: unfolded output of a running command, and a message typed meanwhile",
        lambda: [Reply((Text("This takes a while."), ToolCall("Bash", {"command": LONG_CHECK})), tokens=_used(11_000))],
        _play_output,
        ("--permission-mode", "bypassPermissions"),
        rows=46,
    ),
    Scene(
        "plan",
        "panpan: plan mode, and the plan that waits for an answer",
        lambda: [_look(), _plan()],
        _play_plan,
        rows=44,
    ),
)


def screens_of(scene: Scene) -> Sequence[str]:
    """Play a scene and return its screens with SGR sequences; the last one is at the end of the scene.

    Raises:
        AssertionError: The moment did not come; the message shows the screen.
        FileExistsError: The home folder exists already.
    """
    with ExitStack() as stack:
        home = HOME
        home.mkdir(mode=0o700)
        stack.callback(shutil.rmtree, home)
        workspace = home / "schedule"
        shutil.copytree(ROOT / "panpan" / "demo" / "project", workspace)
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=workspace, check=True)
        server = stack.enter_context(serving(scene.script()))
        env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ} | {
            "HOME": str(home),
            "PANPAN_HOME": str(home / ".panpan"),
            "ANTHROPIC_API_KEY": "sk-ant-picture-0123456789",
            "ANTHROPIC_BASE_URL": server.url,
            "COLORTERM": "truecolor",
            "NO_PROXY": "*",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # only pytest itself
            "PANPAN_SESSIONS_TITLE": "first-words",  # a title would be one more request
        }
        argv = [str(Path(sys.executable).with_name("panpan")), *scene.flags]
        tmux = stack.enter_context(Tmux(argv, env=env, cwd=workspace, columns=COLUMNS, rows=scene.rows))
        screens, is_over = list[str](), Event()
        if scene.is_moving:
            watcher = Thread(target=_watch, args=(tmux, screens, is_over))
            watcher.start()
            stack.callback(watcher.join)
            stack.callback(is_over.set)
        scene.play(tmux)
        return [*screens, _when_still(tmux)]


def _watch(tmux: Tmux, screens: list[str], is_over: Event) -> None:
    """Append the screen whenever it has changed."""
    while not is_over.wait(FRAME_S):
        screen = tmux.styled()
        if not screens or screen != screens[-1]:
            screens.append(screen)


def _when_still(tmux: Tmux) -> str:
    """Return the screen when it has stopped changing."""
    screen = tmux.styled()
    for _ in range(5):
        time.sleep(SETTLE_S)
        before, screen = screen, tmux.styled()
        if screen == before:
            break
    return screen


def moving_svg_of(screens: Sequence[str], title: str, rows: int) -> str:
    """Return captured screens as one picture that shows them in a loop.

    A viewer without animation shows the last screen.
    """
    pictures = [svg_of(screen, title, rows, number) for number, screen in enumerate(screens)]
    seconds = [SHOWN_S] * (len(pictures) - 1) + [LAST_S]
    total = sum(seconds)
    size = re.search(r'viewBox="([^"]+)"', pictures[0])
    assert size is not None
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size[1]}"><style>']
    begin = 0.0
    for number, shown in enumerate(seconds):
        at, until = begin / total * 100, (begin + shown) / total * 100
        before = "" if number == 0 else f"0%,{at:.2f}%{{visibility:hidden}}"
        after = f"{until:.2f}%,100%{{visibility:hidden}}" if number < len(seconds) - 1 else ""
        parts.append(f"@keyframes f{number}{{{before}{at + 0.01:.2f}%{{visibility:visible}}{after}}}")
        hidden = "hidden" if number < len(seconds) - 1 else "visible"
        parts.append(f".f{number}{{visibility:{hidden};animation:f{number} {total:.1f}s step-end infinite}}")
        begin += shown
    parts.append("</style>")
    parts += (f'<g class="f{number}">{picture}</g>' for number, picture in enumerate(pictures))
    return "".join([*parts, "</svg>\n"])


def svg_of(screen: str, title: str, height: int = 0, number: int = 0) -> str:
    """Return a captured screen as a picture, from the first prompt on: the address of the server is above it.

    Args:
        screen: Rows with SGR sequences.
        title: Title of the window.
        height: Rows of the picture; 0: as many as the screen has.
        number: Distinguishes pictures with the same title in one file.
    """
    rows = list(AnsiDecoder().decode(screen))  # together: a row begins in the colours in which the last one ended
    while rows and not rows[-1].plain.strip():
        rows.pop()
    prompts = (at for at, row in enumerate(rows) if row.plain.startswith("❯") and row.plain.strip() != "❯")
    first = next(prompts, 0)
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    shown = rows[first:][-height:] if height else rows[first:]
    for row in shown:
        console.print(row, soft_wrap=True)
    for _ in range(height - len(shown)):
        console.print()
    unique = re.sub(r"\W", "-", f"{title} {number}" if number else title)
    return console.export_svg(title=title, theme=THEME, code_format=SVG, unique_id=unique)


def main(names: Sequence[str]) -> int:
    """Make the named pictures, or all."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    unknown = set(names) - {scene.name for scene in SCENES}
    if unknown:
        sys.stderr.write(f"there are no scenes {', '.join(sorted(unknown))}\n")
        return 2
    for scene in SCENES:
        if not names or scene.name in names:
            path = IMAGES / f"{scene.name}.svg"
            screens = screens_of(scene)
            svg = (
                moving_svg_of(screens, scene.title, scene.rows) if scene.is_moving else svg_of(screens[-1], scene.title)
            )
            path.write_text(svg, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

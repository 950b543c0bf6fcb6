"""How prompt_toolkit draws what it draws itself, the list of completions, in a theme of ours."""

from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from panpan.ui.repl.theme import Theme


def color_depth(theme: Theme) -> ColorDepth | None:
    """Return none at all for a theme without colours; None: what the terminal can do."""
    return None if theme.has_colour else ColorDepth.DEPTH_1_BIT


def menu_style(theme: Theme) -> Style:
    """Return the colours of the list and its scroll bar."""
    if not theme.has_colour:
        return Style.from_dict(
            {
                "completion-menu": "noreverse",
                "completion-menu.completion.current": "reverse",
                "completion-menu.meta.completion": "noreverse",
                "scrollbar.background": "",
                "scrollbar.button": "reverse",
            }
        )
    back, front = ("#e4e4e4", "#1c1c1c") if theme.name == "light" else ("#262626", "#d0d0d0")
    return Style.from_dict(
        {
            "completion-menu": f"bg:{back} {front}",
            "completion-menu.completion.current": "reverse",
            "completion-menu.meta.completion": f"bg:{back} {front}",
            "completion-menu.meta.completion.current": "reverse",
            "scrollbar.background": f"bg:{back}",
            "scrollbar.button": f"bg:{front}",
        }
    )

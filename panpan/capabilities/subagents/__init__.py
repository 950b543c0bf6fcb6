"""Further conversations that the model starts, with tools, rights and a log. See docs/adr/0012.

A subagent is the loop again, run as a turn of its own in a task of the session. The call that started it only receives
its events, so the user can move it to the background while it runs. Its hooks come from the same capabilities in the
same order.

- Rights: two gates, its parent's and one with the mode of its definition. The stricter answer counts. Questions reach
  the user through the same queue, with its name. Its budget is a child of its parent's.
- Order: those of one reply run side by side, and their calls that change something take turns (docs/adr/0027).
  `[agents] max_depth` (1, at most 3) bounds how deep they nest. One in a worktree gives no further copies to those that
  it starts; they work in its own, one after the other.
- Log: it lies in `<session>/subagents/`. A subagent is resumed from it with the same first bytes, by one call at a
  time, which names its kind. A record `subagent` says how a turn began and `subagent_end` how it ended; without the
  second, panpan ended before it did. A fork has copies of these logs.
- Interrupts: Esc ends the turn with all subagents that it waits for. At a question of one in the background it refuses
  that call alone.
"""

"""Makes what a model is sent shorter, so that it fits the context window. See docs/adr/0009.

It happens before a request that would leave less than the reserve of `[compaction]` free, once after a request that the
provider refused as too long, and on `/compact`. It has three steps. Each is taken only if those before are not enough,
and `/compact` takes all of them:

1. Output of tools that is older than the newest messages (`keep_recent_tokens`) gives way to a note that says how to
   read it again, until what is sent fills 70 % of the room.
2. Reminders replace what is older than the newest messages: what the user said, quoted, and what was done, computed
   from all calls and results. The project context, rules files, the notice of plan mode and the prompt of a running
   turn stay as messages. What a hook says is `pinned`, such as the plan and the todo list, is told as it is now.
3. A summary under fixed headings joins them. A model is asked for it without tools. If its answer does not keep to the
   form there is no summary, and the user is told why.

Only whole blocks are cut: a reply with its results. What the model has not answered yet is never summarised; if it is
too long by itself, its output leaves as in step 1. If nothing more can leave, a refused request is not sent again, and
the user is told what is too large in it. `/compact undo` is one more compaction, which says what the one before said.

Sizes are estimates by length, corrected by the counts of the newest replies. Where much of a request was not counted
yet, the provider is asked for an exact count, if it has one.
"""

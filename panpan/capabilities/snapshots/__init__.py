"""The workspace before and after each round that changed it, and undo. See docs/adr/0008.

Each folder of the workspace has a repository of panpan's own, over `file_trees/`. One snapshot is taken before the
first call of a round that may change something, and one after the round: beside the next request, or once 0.3 s have
passed after such a call without another. Rounds that only read cost nothing. The very first begins 0.2 s after the
first turn does. A call that comes before it is whole waits for it, at most 60 s and only once. Both ends are records of
the log, the first of them before the call runs, so that a crash leaves what was there before.

`Undo` plans first. `plan_undo`, `plan_redo` and `plan_rewind` give a `RestorePlan` with the files, the difference, what
is joined with changes of the user, and what stays because the user or another session changed it. `restore` refuses if
a file has changed since the plan was made. Otherwise it does all of it or nothing, as a step that can be undone too.

What is not kept is told once: files over `[snapshots] max_file_mb`, what cannot be read, names that git refuses, large
folders that git ignores, workspaces of more than `max_files` files, a workspace that is the home folder, and a snapshot
that fails, as without git or on a full disk. Nothing else fails for it. What programs generate, such as `__pycache__`,
is kept like anything else, but people are only told how many files it was.
"""

"""Copies of the project, each for one subagent, and the way of their changes into the project.

A subagent with `isolation: worktree` works in a git worktree below `~/.panpan/worktrees/`. It is made without a
checkout, so that nothing of the repository runs: the user's files are copied byte by byte, with new files and changes
that have no commit. Left out are what git ignores, submodules and repositories in the project, files over 20 MB, and
what a sparse checkout leaves out. What it began with is kept as a snapshot, so the user's own `.git` gains the entry of
the worktree and nothing else.

A worktree without changes is removed with the turn. Otherwise the result of the call names the files, and MergeWorktree
shows, merges or discards them. A merge is a write of each file for the gate, too. It is worked out three-way: changes
of other lines are joined, and conflicts stay in the worktree. Files are written all or none, each only while it is, by
its hash, what it was taken for. The index, HEAD and branches are never touched.

A folder in use is locked. So the next session finds what a killed one left, removes it if nothing was changed in it,
and names it otherwise.
"""

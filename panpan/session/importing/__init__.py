"""Transcripts of other programs, and exports of panpan's own, as sessions that go on.

The conversation is the path to the newest message of the tree, with the other parts of its replies (several records may
have one `message.id`) and all results of their calls. Where Claude Code has compacted, the summary becomes a message
and a `compact_boundary` from which requests begin. Subagents, left branches and unknown records are counted and left
out. Nothing of a transcript becomes a setting, a mode or a prompt.
"""

"""`panpan acp`: panpan as the agent of an editor, over the Agent Client Protocol, version 1, and a draft of 2 in `v2`.

Messages have the types of the library `agent-client-protocol`. Its connection and router are not used: they take the
keys of `_meta` for arguments, know no `session/delete`, and cannot send anything right behind a reply.
"""

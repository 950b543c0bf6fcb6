"""The todo list of a session.

TodoWrite replaces the whole list. The session's `Todos` keeps it in `<panpan home>/todos/<session>.json`, which is
written whole, under a lock, and read again after 5 s, since another process may have written it. A todo keeps its id if
its content is the same. If there is no file, the newest result of TodoWrite in the conversation counts. A file that
cannot be read, or is a link, is reported and kept under another name before a new one is written.

Faces take the list from `Todos` or from the result of the call. Compaction pins it while something in it is open.
"""

"""The embedded model: its weights, its server and what it is told.

Nothing here is imported unless the user sets it up or asks for it.

It is `local`, whatever provider and address the settings name. Its profile has a short prompt of its own, five tools,
short results, no project context, and temperature 0. Its provider starts the server with the first request, as a child
that ends when the pipe to panpan closes, so also after a crash. It puts worked examples before the conversation, which
are in no log, leaves out whole oldest rounds once the window is full, mends the usual slips of so small a model before
anything above sees the call, and answers one conversation after the other. A server that `panpan local run` keeps is
found by a private file and the lock beside it.

Where settings and keys name no model, a model server on this machine is offered first, if the user allowed that once,
and then this one, if it is set up.
"""

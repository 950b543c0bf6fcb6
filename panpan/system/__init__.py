"""The only dangerous code: files, processes, git, the sandbox, the web.

Each danger has one function. Nothing above opens a path or starts a process another way.
"""

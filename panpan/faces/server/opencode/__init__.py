"""A subset of the server of OpenCode, so that programs on its SDK (npm `@opencode-ai/sdk`, 1.x) can use panpan.

Shapes and names are those of the SDK's published types, of both of its clients (the package itself and `/v2`).
`addresses.py` lists what works and what is refused. The rule: nothing here does anything by itself. Each address is
translated to operations of the one table, which check the caller's rights.
"""

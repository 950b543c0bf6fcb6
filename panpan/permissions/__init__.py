"""Permissions of calls: rules, modes and the gate.

docs/gate.md has the order in which a call is judged. Each decision carries a `Reason`: a sentence for people, and
for programs its kind, the rule with the `FILE:LINE` it is in, the simple command, the path, and what was assumed.
It goes into `PermissionDecided`, the debug log and `stream-json`, with the digest of the call.

Sessions and the commands that explain rules use the same gate, so what `panpan debug permission` says is what happens.
Where a question showed what a call would change, the tool plans again when it runs, and refuses to do anything else.
Where the plan of a writing tool fails already, nobody is asked and the call fails. "Always" is offered only if every
character of the rule can be seen; a rule with a star for the arguments only for the runners of a short list.
"""

"""Budgets: what a session and its subagents may spend, as a tree in which the limits of a parent bind its children.

Everything that asks a model asks through `BudgetedModel`. Before a request is sent, its input and its longest reply are
reserved at the highest price, in the budget of the agent and in all above it. When the reply is there, what it used is
counted instead. The input is what a provider has counted of it, and a third more than estimated of the rest. If the
longest reply does not fit, a shorter one is asked for, down to 1,024 tokens. If others have reserved what is left, the
request waits for them. What does not fit at all is refused before it is sent.

A reply that was cut short costs what arrived of it, as an estimate. So does a reply without a usable count, and, under
a limit, one that claims less than half of the estimated text of its request. `/cost` says how many these are.

Time counts while turns run, and pauses while the user is asked anything. It ends turns within a request or a call,
too. What was spent is read from the log, from all of its branches, and from those of the subagents (`spending_of`). A
record `spent` tells what no message there does, such as replies that were cut short.
"""

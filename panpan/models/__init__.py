"""Models: the client, the providers behind it, retries and prices. Knows no tools and no faces.

The choice of a model is pure: an explicit provider wins; then a model listed under a provider of the user's,
`provider/model`, an address of the user's, the maker that the name tells, and for other names OpenRouter or OpenAI, if
their key is there. With nothing said, the first vendor whose key is there gives its default model.

There are two dialects, the Messages API and chat completions; what differs between servers of the second is data. The
SDKs make and send requests. Their retries are off, and the stream is read raw (docs/adr/0004). A reply is whole when
`message_stop`, a finish reason or `[DONE]` came. Anything else is a `StreamError` and tried again, as are 429, statuses
of servers in trouble and lost connections: up to 8 tries, with pauses up to 30 s (`retry-after` up to 60 s), 10 minutes
in all. An idle time-out of 120 s, or 600 s for local servers, bounds every read. Thinking goes back with its signature
to the model that thought it.

A few models write their calls as JSON in text. Where the profile says so, such a reply becomes a call.
"""

"""Models: the client, the providers behind it, retries and prices. Knows no tools and no faces.

The choice of a model is pure. An explicit provider wins, then a model listed under a provider in the settings,
`provider/model`, an address in the settings, and the maker that the name implies. Other names go to OpenRouter or
OpenAI, if their key is set. Without any choice, the first vendor with a key gives its default model.

There are two dialects, the Messages API and chat completions; the differences between servers of the second are data.
The SDKs make and send requests. Their retries are off, and the stream is read raw (docs/adr/0004). A reply is complete
after `message_stop`, a finish reason or `[DONE]`. Any other end is a `StreamError` and is retried, as are 429, statuses
of servers in trouble and lost connections: up to 8 tries, with pauses up to 30 s (`retry-after` up to 60 s), 10 minutes
in all. An idle time-out of 120 s, or 600 s for local servers, limits every read. Thinking goes back with its signature
to the model that wrote it.

A few models write their calls as JSON in text. If their profile says so, such a reply becomes a call.
"""

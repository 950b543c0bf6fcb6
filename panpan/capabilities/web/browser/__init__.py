"""The browser: pages as they are once their scripts have run, with no way out but the filtering proxy.

It is Chromium behind Playwright, started when the first page needs it and ended with the session. Each page has a
context and a `FilterProxy` of its own, so that a refusal is reported with the page that caused it. Chromium finds
the address of one name only, that of the proxy, and speaks no UDP. A page is read in a world of its own, which its
scripts cannot change. A step that hangs costs the browser, which is started again at most once for a page. It needs
asyncio, as Playwright does.
"""

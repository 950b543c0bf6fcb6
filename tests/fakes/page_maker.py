"""Parses pages of the web in this process: the result is the same, and starting a worker is saved."""

from io import BytesIO

from panpan.capabilities.web.fetching import ParsedPage, ParseRequest, decoded_answer, encoded_job
from panpan.capabilities.web.page_text import answer


async def made_here(request: ParseRequest) -> ParsedPage:
    return decoded_answer(answer(BytesIO(encoded_job(request))))

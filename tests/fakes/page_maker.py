"""Makes text of what came from the web in this process: what is made of it is the same, and a start is saved."""

from io import BytesIO

from panpan.capabilities.web.fetching import Came, Made, made_from, question
from panpan.capabilities.web.page_text import answer


async def made_here(came: Came) -> Made:
    return made_from(answer(BytesIO(question(came))))

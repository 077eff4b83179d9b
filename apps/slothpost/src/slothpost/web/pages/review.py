"""*Review*: what waits for a decision, what goes out next, and what the user should know."""

from __future__ import annotations

from datetime import datetime

from litestar import Response, get
from litestar.enums import MediaType

from slothpost.model import Post
from slothpost.web.context import HttpRequest, now_of, products_of, slothpost_of, user_of
from slothpost.web.pages.rendering import page

PAGE = 20
MAX_COMING = 6
MAX_NOTICES = 8


@get("/")
async def review(request: HttpRequest) -> Response[str]:
    slothpost, user = slothpost_of(request), user_of(request)
    cards = await slothpost.review.queue(user.id, first=PAGE, after=request.query_params.get("after") or None)
    products, now = await products_of(request), now_of(request)
    return await page(
        request, "review", "review",
        cards=cards, ordered=sorted(cards.items, key=lambda card: _is_late(card.post, now)),
        coming=await _coming(request, user.id), notices=await slothpost.notices.current(user.id, MAX_NOTICES),
        products=products, product_names={product.id: product.name for product in products},
    )  # fmt: skip


@get("/review/count")
async def count(request: HttpRequest) -> Response[str]:
    """Return how many posts wait, for a page that stays open."""
    number = await slothpost_of(request).review.count(user_of(request).id)
    return Response(str(number), media_type=MediaType.TEXT)


HANDLERS = [review, count]


def _is_late(post: Post, now: datetime) -> bool:
    """Tell whether a post waits for a person after its time: a draft that still has one comes first."""
    return post.state != "drafted" or post.slot_at <= now


async def _coming(request: HttpRequest, user: str) -> list[Post]:
    """Return the approved posts that go out next, and before them those whose time has passed while they are held."""
    found = await slothpost_of(request).db.query(Post.waiting(user), where=Post.state == "approved", first=MAX_COMING)
    return list(found.items)

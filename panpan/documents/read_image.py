"""Pictures for a model: one of four formats, checked to be whole, and no larger than models take in.

A damaged picture is refused here, since a provider would refuse every later request that has it in its history.
Synchronous: decoding takes its time.
"""

from base64 import b64encode
from io import BytesIO
from typing import TYPE_CHECKING

from panpan.errors import ToolError
from panpan.types.content import Base64Source, ImageBlock
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

MAX_EDGE_PIXELS = 1568
"""Longest edge that models look at without scaling it down themselves (Messages API, "Vision")."""
_MAX_IMAGE_BYTES = 3_700_000
"""Largest picture; it stays below 5 MB in base64, the limit of the Messages API for one."""
_MEDIA_TYPE = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, ready to be sent."""

    block: ImageBlock
    description: str
    """Format and size, such as "PNG image, 800x600 pixels"."""


def image_format(data: bytes) -> str | None:
    """Return the format that the first bytes tell, None if it is not one that models see."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WEBP"
    return None


def prepare_image(data: bytes, shown: str) -> Picture:
    """Return the picture in `data`, scaled down where it is too large.

    `data`: a file of a format that `image_format` knows.

    Raises:
        ToolError: It is damaged, or has more pixels than is safe to decode.
    """
    image_kind = image_format(data) or ""
    try:
        image = _opened(data, image_kind, shown)
        size = f"{image.width}x{image.height} pixels"
        if max(image.size) <= MAX_EDGE_PIXELS and len(data) <= _MAX_IMAGE_BYTES:
            return Picture(_block(data, image_kind), f"{image_kind} image, {size}")
        small = _scaled(image)
        small_data, small_kind = _saved(small, image_kind)
    except ToolError:
        raise
    except Exception as exc:  # a damaged file makes Pillow raise nearly anything
        raise ToolError(f"{shown} is a damaged {image_kind} image, or one that was cut off") from exc
    return Picture(_block(small_data, small_kind), f"{image_kind} image, {size}, shown at {small.width}x{small.height}")


def _opened(data: bytes, image_kind: str, shown: str) -> "ImageFile":
    """Return the decoded picture; not by `Image.open`, which warns on stderr of pictures with many pixels."""
    from PIL import Image, ImageFile
    from PIL.GifImagePlugin import GifImageFile
    from PIL.JpegImagePlugin import JpegImageFile
    from PIL.PngImagePlugin import PngImageFile
    from PIL.WebPImagePlugin import WebPImageFile

    classes: dict[str, type[ImageFile.ImageFile]] = {
        "PNG": PngImageFile,
        "JPEG": JpegImageFile,
        "GIF": GifImageFile,
        "WEBP": WebPImageFile,
    }
    image = classes[image_kind](BytesIO(data))
    if image.width * image.height > (Image.MAX_IMAGE_PIXELS or 0):
        raise ToolError(
            f"{shown} has {image.width}x{image.height} pixels, too many to decode; it has to be scaled down"
        )
    image.load()
    return image


def _scaled(image: "Image") -> "Image":
    """Return the picture upright, in 8 bits a channel, its long edge at most what models look at."""
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith("I"):
        upright = upright.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    elif upright.mode not in {"L", "RGB", "RGBA"}:
        has_alpha = "A" in upright.mode or "transparency" in upright.info
        upright = upright.convert("RGBA" if has_alpha else "RGB")
    upright.thumbnail((MAX_EDGE_PIXELS, MAX_EDGE_PIXELS))
    return upright


def _saved(image: "Image", image_kind: str) -> tuple[bytes, str]:
    """Return the picture as a file: JPEG stays JPEG, the others become PNG where that is small enough."""
    if image_kind != "JPEG":
        buffer = BytesIO()
        image.save(buffer, "PNG")
        if buffer.tell() <= _MAX_IMAGE_BYTES:
            return buffer.getvalue(), "PNG"
    buffer = BytesIO()
    image.convert("RGB").save(buffer, "JPEG", quality=85)
    return buffer.getvalue(), "JPEG"


def _block(data: bytes, image_kind: str) -> ImageBlock:
    return ImageBlock(source=Base64Source(media_type=_MEDIA_TYPE[image_kind], data=b64encode(data).decode("ascii")))

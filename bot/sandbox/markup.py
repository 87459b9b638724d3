"""Build HTML in which every piece of text is escaped unless it was built here."""

from __future__ import annotations

import html
import re
import zlib
from collections.abc import Iterable

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
# NUL, other controls and lone surrogates have no place in an HTML document and cannot all be sent as UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

Attribute = str | int | bool | None


class Html(str):
    """Markup that is safe to put into a page as it stands."""

    __slots__ = ()


def escape(text: str) -> Html:
    """Text as markup; markup that was built here is left as it is."""
    if isinstance(text, Html):
        return text
    return Html(html.escape(_UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n"))))


def join(parts: Iterable[str], between: str = "") -> Html:
    """Pieces one after the other, each escaped unless it is markup."""
    return Html(escape(between).join(escape(part) for part in parts))


def element(tag: str, /, *children: str, **attributes: Attribute) -> Html:
    """One element, for example `element("p", "a < b", class_="note", aria_live="polite")`.

    A trailing underscore is dropped and the others become dashes; `None` and `False` leave an attribute out.
    """
    start = f"<{tag}{''.join(_attribute(name, value) for name, value in attributes.items())}>"
    return Html(start if tag in _VOID else f"{start}{join(children)}</{tag}>")


def stamped(tag: str, /, *children: str, **attributes: Attribute) -> Html:
    """An element that carries a fingerprint of itself, so that the page can tell whether it changed."""
    whole = element(tag, *children, **attributes)
    return element(tag, *children, **attributes, data_rev=format(zlib.crc32(whole.encode()), "08x"))


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    written = name.rstrip("_").replace("_", "-")
    return f" {written}" if value is True else f' {written}="{escape(str(value))}"'

"""Who may talk to the page: only itself, only on loopback."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

SAFE_HEADERS = (
    (
        "Content-Security-Policy",
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)


class Forbidden(Exception):
    """The request did not come from this page; the message says why."""


def check_host(environ: dict[str, Any]) -> None:
    """Refuse a request that was sent to another name than loopback's.

    A name of somebody else's that is made to point here (DNS rebinding) would otherwise read this page.
    """
    host = environ.get("HTTP_HOST", "")
    if _name(f"//{host}") not in LOOPBACK:
        raise Forbidden(f"This page answers only on localhost, not on {host!r}. Open it at http://localhost.")


def check_same_origin(environ: dict[str, Any]) -> None:
    """Refuse a change that another site's page asks for."""
    site, origin = environ.get("HTTP_SEC_FETCH_SITE"), environ.get("HTTP_ORIGIN")
    if site is not None and site != "same-origin":
        raise Forbidden("Another site asked for this. Use the page itself.")
    if origin is not None and urlsplit(origin).netloc != environ.get("HTTP_HOST"):
        raise Forbidden("Another site asked for this. Use the page itself.")
    if site is None and origin is None:
        raise Forbidden("This needs an Origin header, which every browser sends. Use the page itself.")
    if environ.get("CONTENT_TYPE", "").partition(";")[0].strip() != "application/json":
        raise Forbidden("This takes JSON only (Content-Type: application/json).")


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""

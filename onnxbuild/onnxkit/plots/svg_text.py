"""Text in SVG."""

from __future__ import annotations


def escape(text: str) -> str:
    """Return text with the characters escaped that mean something in XML.

    As `xml.sax.saxutils.escape`, whose module imports urllib, http, email and ssl.
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

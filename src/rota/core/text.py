"""Text from files and from others' programs, before a terminal or a figure shows it."""

import unicodedata


def printable(text: str) -> str:
    """The text with what would steer a terminal, or cannot be written, as an escape like `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(char if _shows(char) else char.encode("unicode_escape").decode() for char in text)


def printable_lines(text: str) -> str:
    """The same, line by line."""
    return "\n".join(map(printable, text.split("\n")))


def _shows(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"

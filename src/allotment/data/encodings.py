"""How the letters of a text file are written: found by a rule that people can follow, or said."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import IO

from allotment.errors import InputError, Mistake

UTF_8 = "utf-8"
KNOWN_ENCODINGS = re.compile(
    r"ascii|utf-(8|16|32)(-[bl]e|-sig)?|utf-8-sig|iso8859-\d+|cp\d+|mac-\w+|koi8-\w|shift_jis\w*"
    r"|euc_\w+|gb(2312|k|18030)|big5\w*|johab|kz1048|ptcp154|tis-620"
)
"""what text files are written in; Python has others, which are no way to write a table"""

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""what a file may begin with, and what it says; the longer ones first"""
WESTERN = "cp1252"
"""what Windows writes in Western Europe and America; its letters are those of latin-1"""
PIECE_OF_TEXT = 2**20
"""bytes that are looked at together"""
_WORD = re.compile(r"\w*[^\W\x00-\x7f]\w*")
LONGEST_SAMPLE = 24
"""letters that are shown of a word"""


def find_encoding(
    begin: Callable[[], IO[bytes]], watch: Callable[[int], None]
) -> tuple[str | None, str]:
    """How a text is written, and a word that shows whether that is right; `begin` gives all of it,
    and `watch` is told how many bytes were read.

    The rule: a byte order mark says it; else every second byte of 0 is UTF-16; else it is UTF-8 if
    all of it can be; else cp1252 if all of it can be; else None.
    """
    head = begin().read(PIECE_OF_TEXT)
    for mark, encoding in BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return encoding, ""
    if half := _find_half(head[:4096]):
        return half, ""
    for encoding in (UTF_8, WESTERN):
        word = _decode(begin(), encoding, watch)
        if word is not None:
            return encoding, "" if encoding == UTF_8 else word
    return None, ""


def _find_half(head: bytes) -> str:
    """UTF-16 without a mark: of plain letters every second byte is 0."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if 3 * odd > len(head) // 2 and not even:
        return "utf-16-le"
    return "utf-16-be" if 3 * even > len(head) // 2 and not odd else ""


def _decode(stream: IO[bytes], encoding: str, watch: Callable[[int], None]) -> str | None:
    """The first word in it with a letter that is not one of ASCII; None if it is not so
    written."""
    decoder, word, size = codecs.getincrementaldecoder(encoding)(), "", 0
    try:
        while piece := stream.read(PIECE_OF_TEXT):
            size += len(piece)
            watch(size)
            if piece.isascii() and not decoder.getstate()[0]:
                continue  # the same in both encodings, and most files are nothing else
            text = decoder.decode(piece)
            if not word and not text.isascii() and (found := _WORD.search(text)):
                word = found[0][:LONGEST_SAMPLE]
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return None
    return word


def check_encoding(name: str) -> str:
    """The name as Python has it; raises InputError if it is not an encoding of texts."""
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        found = ""
    if not KNOWN_ENCODINGS.fullmatch(found):
        what = f"{name[:40]!r} is not an encoding of text files; such as utf-8, cp1252 or utf-16"
        raise InputError([Mistake("encoding", what)])
    return UTF_8 if found in ("ascii", "utf-8-sig") else found

"""Plans and data sets for people: tables and sentences on a terminal, or plain text where there is
none."""

from allotment.errors import visible
from allotment.terminal.page import Page, TextColumn, fit, shorten

__all__ = ["Page", "TextColumn", "fit", "shorten", "visible"]

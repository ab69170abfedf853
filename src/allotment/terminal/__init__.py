"""Plans and data sets for people: tables and sentences on a terminal, or plain text where there is
none."""

from allotment.errors import visible
from allotment.terminal.page import Column, Page, fit, shorten

__all__ = ["Column", "Page", "fit", "shorten", "visible"]

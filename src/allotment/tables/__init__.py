"""Plans and data sets for people: tables and sentences on a terminal, or plain text where there is none."""

from allotment.tables.page import Column, Page, fit, shorten, visible

__all__ = ["Column", "Page", "fit", "shorten", "visible"]

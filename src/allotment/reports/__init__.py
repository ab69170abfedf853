"""The report: values in, one static page out, which needs no network and runs no script."""

from allotment.reports.page import render

__all__ = ["render"]

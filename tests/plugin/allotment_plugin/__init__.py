"""One of everything that can be added to allotment."""

"""Kinds of data that are built in: a module each, which defines SOURCE."""

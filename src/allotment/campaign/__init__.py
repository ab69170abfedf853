"""A campaign: one directory with its settings, its store, what was ordered and what came back."""

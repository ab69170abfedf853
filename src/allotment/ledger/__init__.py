"""The ledger of a campaign: one SQLite file, its lock, its copies and its archive."""

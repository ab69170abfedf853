"""The built-in strategies: each file is one, and its name is the strategy's."""

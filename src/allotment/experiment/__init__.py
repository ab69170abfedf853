"""The paper's experiments: its tables and figures on its own data, at its size or one for two
cores."""

"""Labels known and unknown, and the only code that opens data files."""

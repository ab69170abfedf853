"""The tables and figures of the paper, a file each."""

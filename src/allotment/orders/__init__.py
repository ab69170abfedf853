"""Which instances to label: an order, and the sheet that people fill in."""

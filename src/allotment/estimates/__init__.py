"""What training on the labels at hand shows about the worth of one more label, and how sure that
is."""

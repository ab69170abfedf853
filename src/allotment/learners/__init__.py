"""What trains: the protocol that any training code fits, and the built-in networks behind it."""

"""Trained models as folders: what was trained, on what, and all that it takes to ask them."""

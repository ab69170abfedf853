"""Coverage-guided fuzzing of everything that reads what others wrote; `python tests/fuzz.py --help`
tells how."""

"""The built-in runners: each file is one, and its name is the runner's."""

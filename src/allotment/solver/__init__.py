"""Whole numbers and arrays: the exact optimum for one budget, for all budgets, and the paper's
baselines."""

"""A corpus of purchases that were trained out on many data sets, and the judge of ways to plan
them."""

"""The stock of a campaign: which labels are there, and which rows they belong to."""

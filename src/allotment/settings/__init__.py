"""What the user decides: campaign.toml, read and written."""

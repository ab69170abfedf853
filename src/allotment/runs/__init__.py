"""Jobs are executed here: in this process or on local processes, with the same bytes either way."""

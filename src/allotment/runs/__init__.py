"""Jobs are executed here, by whichever runner, with the same bytes from each of them."""

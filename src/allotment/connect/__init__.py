"""Labels that come back from wherever they were made: nothing in them is trusted, all that is good
is kept."""

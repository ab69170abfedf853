"""Many small campaigns on many data sets, trained out once, so that any way to plan can be judged
in minutes."""

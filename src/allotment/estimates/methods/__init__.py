"""The built-in methods, one file each: a module's name is the method's, and its METHOD is it."""

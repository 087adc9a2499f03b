"""Launch: the cradle, the attempt directory, and the foreground."""

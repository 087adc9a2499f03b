"""Launch: the cradle and the attempt directory."""

"""Follow: the log, the processes, the end of both."""

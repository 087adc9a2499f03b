"""The only joiner: plan -> launch -> follow -> probe -> diagnose, and what can be done with a run afterwards.

Nothing is imported here: ``status`` and ``wait`` must start fast, and need few of the modules.
"""

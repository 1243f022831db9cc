"""What a run leaves for people and tools to read. Every view is a function of the ledger's state and nothing else.

`figures` computes the few numbers that all views share, `opt_log`, `stage_result`, `records` and `summary` each make
one kind of view, `render` and `templates/` give the pages their form, `views` writes them all.
"""

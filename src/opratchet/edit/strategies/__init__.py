"""Strategies that turn one knob, and the renaming of the vector API. Rewrites of the data flow are in `edit/rewrites`."""

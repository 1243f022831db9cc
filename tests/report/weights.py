"""Runs whose workloads have weights."""

from __future__ import annotations

from tests.builders import Story


def weighted(story: Story, **weights: float) -> Story:
    """The story, begun, with these weights of its workloads."""
    story.start()
    begun = story.lines[0].event
    workloads = [
        w.model_copy(update={"weight": weights.get(w.id, w.weight)}) for w in begun.workloads
    ]
    header = begun.model_copy(update={"workloads": workloads})
    story.lines[0] = story.lines[0].model_copy(update={"event": header})
    return story

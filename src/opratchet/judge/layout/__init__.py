"""The structural check of a PyPTO operator folder; nothing of the folder is imported or run."""

from opratchet.judge.layout.check import check_layout, check_text
from opratchet.judge.layout.model import Finding, LayoutFiles
from opratchet.judge.layout.rules import RULES, Rule

__all__ = ["RULES", "Finding", "LayoutFiles", "Rule", "check_layout", "check_text"]

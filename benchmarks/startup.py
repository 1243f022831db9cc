"""How long `import opratchet` and `opratchet --help` take on a warm disk: the median of 15, next to an empty Python.

python benchmarks/startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import opratchet": ["-c", "import opratchet"],
    "opratchet --help": ["-m", "opratchet", "--help"],
}


def seconds(arguments: list[str]) -> float:
    """Wall time of one start."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    for name, arguments in COMMANDS.items():
        taken = [seconds(arguments) for _ in range(16)][1:]
        print(f"{name:<18} {statistics.median(taken):.3f} s")


if __name__ == "__main__":
    main()

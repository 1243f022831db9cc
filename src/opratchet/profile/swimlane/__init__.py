"""What a run of PyPTO left about its cores: read, counted, and told in one `Analysis`.

PyPTO writes who worked on which task and when, on a device as on its cost model. `analyse` reads whatever of these
files a folder holds; `read_tasks` reads the raw list alone; `is_output` says whether a folder is such a one.
"""

from opratchet.profile.swimlane.analysis import analyse
from opratchet.profile.swimlane.files import is_output
from opratchet.profile.swimlane.rates import Rates
from opratchet.profile.swimlane.result import Analysis
from opratchet.profile.swimlane.tasks import Tasks, read_tasks
from opratchet.profile.swimlane.timeline import Cores

__all__ = ["Analysis", "Cores", "Rates", "Tasks", "analyse", "is_output", "read_tasks"]

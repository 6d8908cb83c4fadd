"""What the server of worker processes (pool.py) imports first, and no other process: the server ends with the stage."""

from stages.runner.pool import end_with_parent

end_with_parent()

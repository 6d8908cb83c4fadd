"""First import of the server from which workers are forked (pool.py): makes the server end with the stage."""

from stages.runner.pool import end_with_parent

end_with_parent()

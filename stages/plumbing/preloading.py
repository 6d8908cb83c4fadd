"""What the server of processes imports first: turns the garbage collector off while it imports everything else.

Imports leave next to no garbage, and looking for it takes a tenth of their time. The processes that the server begins
turn the collector on again (pool.py).
"""

import gc

gc.disable()

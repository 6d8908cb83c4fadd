"""Tables, figures, HTML and LaTeX: stage `report`."""

import os

# Before matplotlib is imported, which reads both: a notebook hands its backend on to commands, where the backend may be
# missing, and a user's matplotlibrc may have keys and letters that this version refuses.
os.environ.pop("MPLBACKEND", None)
os.environ["MATPLOTLIBRC"] = os.devnull

"""The log of a pre-training run as curves that can be watched while it goes on (DVCLive)."""

from pathlib import Path

from dvclive import Live


class Curves:
    """A folder of curves, one file a quantity, begun anew from what the run has logged before."""

    def __init__(self, folder: Path, log: list[dict]):
        self._live = Live(str(folder), report=None, dvcyaml=None, save_dvc_exp=False, monitor_system=False)
        for entry in log:
            self.show(entry)

    def show(self, entry: dict) -> None:
        """entry: `step` and the values of that step by name."""
        self._live.step = entry["step"]
        for name, value in (entry | entry["probes"]).items():
            if name not in ("step", "probes"):
                self._live.log_metric(name, value)
        self._live.make_summary()

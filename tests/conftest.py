import os
import signal
from pathlib import Path

import psutil
import pytest
import torch

from tests.places import ROOT
from tests.toy import pack_tokens

# Jobs must set one thread. A job that kept these two threads would compute other bits, and tests would fail.
torch.set_num_threads(2)

# Tests work in empty folders, where the server of worker processes would not find the modules of the repository.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))


def pytest_collection_modifyitems(items):
    """Whole pipelines come first, because all other tests fit beside and after them when two tests run at a time."""
    items.sort(key=lambda item: "pipeline" not in item.keywords)


@pytest.fixture(autouse=True)
def end(request):
    """Fails a test that takes too long, and kills the processes that the test has started."""
    minutes = 120 if "pipeline" in request.keywords else 20

    def stop(*_):
        for process in psutil.Process().children(recursive=True):
            process.kill()
        pytest.fail(f"not done after {minutes} minutes")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60 * minutes)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def shared_data() -> Path:
    """The folder of real GLUE, SQuAD, Wikipedia, OSCAR and UT1 data: the variable REAL_DATA, or ../shared/data."""
    folder = Path(os.environ.get("REAL_DATA", ROOT.parent / "shared/data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; the variable REAL_DATA may name their folder")
    return folder


@pytest.fixture
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def one_thread():
    """Sets one thread, as in a job; two threads would wait for each other when all cores are busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def tokens(tmp_path) -> Path:
    """Writes a toy data/tokens and returns the folder."""
    return pack_tokens(tmp_path / "tokens")


@pytest.fixture(scope="session")
def reports(tmp_path_factory) -> Path:
    """Renders the reports of a run on made-up numbers, once for all tests of a process, and returns the folder."""
    from tests.toy_report import make

    with pytest.MonkeyPatch.context() as monkeypatch:
        return make(tmp_path_factory.mktemp("run"), monkeypatch)

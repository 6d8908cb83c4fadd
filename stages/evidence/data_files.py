"""Checks the CSV files of data/published and data/released, which people may edit by hand."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow import csv

from stages.files.yaml_files import read_yaml

FORMS = read_yaml(Path(__file__).with_suffix(".yaml"))
REMEDY = "correct the file, or restore the file by `git checkout`"


def check_table(path: Path) -> None:
    """Checks the columns, numbers and keys of a CSV file by data_files.yaml, and the number of rows by INDEX.csv.

    INDEX.csv, of the same folder, has a number of rows (`cells`) only for some files.

    Raises:
        ValueError: the file is missing or has a fault; the message names the file, and the row or column.
    """
    # A file that data_files.yaml does not name is a table of a paper, with the form `cells`.
    form = FORMS.get(path.name, FORMS["cells"])
    types = dict.fromkeys(form["texts"], pa.string()) | dict.fromkeys(form["numbers"], pa.float64())
    options = csv.ConvertOptions(column_types=types, include_columns=list(types))
    try:
        # several threads would not know the row of an error
        frame = csv.read_csv(path, csv.ReadOptions(use_threads=False), convert_options=options).to_pandas()
        listed = pd.read_csv(path.with_name("INDEX.csv")).set_index("file")["cells"]
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path}: {error}; {REMEDY}") from None
    rows = listed.get(path.name, len(frame))
    if len(frame) != rows:
        raise ValueError(f"{path}: {len(frame)} rows, but INDEX.csv beside the file says {rows}; {REMEDY}")
    repeated = frame.duplicated(form["key"])
    if repeated.any():
        # the first line is the header
        line = repeated.argmax() + 2
        raise ValueError(f"{path}, line {line}: {', '.join(form['key'])} as in a line before; {REMEDY}")

"""The numbers that the sentences of the report name: the answers of sections.yaml, and the first screen."""

from stages.evidence.baselines import AT_CHANCE
from stages.evidence.fields import select_rows
from stages.evidence.scores import GLUE_SCORE
from stages.evidence.statistics import FLIPPED, ONE_CHECKPOINT
from stages.report import answer_figure, claims_and_audit, read_results
from stages.report.text_templates import read_content
from stages.schema.settings import Settings


def gather_facts(settings: Settings, rows: list[dict]) -> dict[str, object]:
    """Gathers the values that the sentences of the report name.

    Rows are dictionaries; `detectable` has the differences in GLUE score, in points, that this run finds with 80 %
    power, and `enough` is the number of seeds from which on sign flips check the intervals.
    """
    frames = {
        "studies": read_results.read_studies(),
        "released": read_results.read_contrasts(source="released", quantity="score", at=GLUE_SCORE),
        "squad": select_rows(
            answer_figure.list_answers(read_results.read_cells()),
            source="reproduced",
            size=settings.sizes[-1],
            questions="squad1",
            measure="f1",
            trained="single",
        ),
        "translated": read_results.read_table("translation"),
        "totals": claims_and_audit.count_verdicts(read_results.read_claims()),
        "audited": claims_and_audit.count_facts(read_results.read_audit()),
    }
    compared = read_results.read_contrasts(
        source="reproduced", quantity="score", at=GLUE_SCORE, size=settings.sizes[-1], protocol=settings.protocols[0]
    )
    compared = compared[~compared["verdict"].isin((AT_CHANCE, ONE_CHECKPOINT))]
    return {
        "detectable": compared["detectable"].dropna().tolist(),
        "enough": FLIPPED.start,
        "operators": read_content("sections")["operators"],
        "quantities": read_content("sentences")["quantities"],
        "rows": rows,
        **{name: frame.to_dict("records") for name, frame in frames.items()},
    }

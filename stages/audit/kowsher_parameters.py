"""Numbers of parameters in Kowsher et al., checked."""

from fractions import Fraction
from itertools import product

from stages.audit.closed_formulas import SIZES, compute_saved_percent, count_parameters
from stages.audit.findings import Findings, check_equal, check_statement, judge_printed, note_numbers
from stages.audit.printed import EDITIONS, KOWSHER, read_table

# The width of BERT-base.
_, H, _, _ = SIZES["base"]
# Per cent that `shared` saves of Q, K and V without biases: one matrix and three diagonals replace three matrices.
SAVED_WITHOUT_BIASES = 100 * (1 - Fraction(H + 3, 3 * H))


def check_counts() -> Findings:
    """Check Table 4: the count of every model, and the per cent that `shared` saves."""
    for edition, operator in product(EDITIONS, KOWSHER):
        yield check_equal(
            "{edition}.PARAM.{operator}",
            int(read_table(edition, "table4_model_parameters")[f"base.{operator}", "params"]),
            count_parameters(operator, "base")["masked_lm"],
            edition=edition,
            operator=operator,
        )
    yield note_numbers("K.PARAM.seqcls", counted=count_parameters("shared", "base")["classifier"])
    table = read_table("K24", "table4_model_parameters")
    kept = table.read_value("base.shared", "params") / table.read_value("base.original", "params")
    yield judge_printed("K.PARAM.pct", table["base.shared", "saved_percent"], 100 * (1 - kept))


def check_shares() -> Findings:
    """Check the per cent of parameters that `shared` saves, as stated by Kowsher et al. (abstract, limitations)."""
    saved = compute_saved_percent("shared", "base")
    text = read_table("K24", "text_and_figure_numbers")
    printed = text["params", "qkv_param_reduction"]
    # The paper does not say whether biases count.
    yield judge_printed("K.BLOCK", printed, SAVED_WITHOUT_BIASES)
    yield judge_printed("K.BLOCK.bias", printed, saved["projections"])
    yield judge_printed("K.BLOCK.6667", text["params", "qkv_param_reduction_limitations"], SAVED_WITHOUT_BIASES)
    # "By more than half" is a statement on the whole model.
    yield check_statement("K.HALF", saved["masked_lm"] > 50, **saved)


def check_comparison() -> Findings:
    """Check Table 7 (NAACL): the per cent of the weights for Q, K and V that each operator saves, without biases."""
    table = read_table("K25", "table7_method_comparison")
    saved = {
        "symmetric": Fraction(100, 3),
        # One diagonal replaces one of three matrices [H, H].
        "partial_qk": Fraction(100 * (H - 1), 3 * H),
        "shared": SAVED_WITHOUT_BIASES,
    }
    for operator, exact in saved.items():
        yield judge_printed("K25.T7.{operator}", table["parameter_reduction", operator], exact, operator=operator)
    # Pairwise keeps 2 h^2 + h^2 / heads parameters of 3 h^2.
    shares = {heads: 100 * (1 - 1 / heads) / 3 for heads in (8, 12, 1024)}
    shown = [f"{heads} heads {share:.2f} %" for heads, share in shares.items()]
    yield check_statement("K25.T7.pairwise", max(shares.values()) >= 35, shares=", ".join(shown))

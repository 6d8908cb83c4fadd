"""The catalogue of operators, without torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Description:
    """The attributes of an operator's class."""

    # name in params.yaml
    name: str
    # equation as reports print it
    equation: str
    # publication to cite for the operator
    source: str
    # name in reports; "" takes `name`, in words
    label: str = ""
    # (colour, stroke) in figures, as matplotlib takes them; () leaves both to the figure
    look: tuple = ()
    # whether a BERT with the W_q, W_k and W_v that `build_projections` returns has equal outputs
    exportable: bool = True
    # allowed values of `start`, the source's first
    starts: tuple[str, ...] = ("default",)
    # parameters outside Linear layers that influence only the scores
    scores_alone: tuple[str, ...] = ()


# By the name of the class in operators.py or hadamard.py. Schema and reports load this file by path, because an import
# of the package would import torch.
CATALOGUE = {
    "Original": Description(
        name="original",
        equation="softmax(Q_i K_i^T / sqrt(d)) V_i, Q = X W_q, K = X W_k, V = X W_v",
        source="Devlin et al. 2018; Courtois et al. 2024, equation 1",
        look=("#5b6570", "solid"),
        # `tied` is a control of this project: W_k starts as W_q and is free afterwards, which asks whether a gain of
        # Symmetric comes only from the initialisation.
        starts=("default", "tied"),
    ),
    "Symmetric": Description(
        name="symmetric",
        equation="softmax(Q_i Q_i^T / sqrt(d)) V_i, Q = X W_q, V = X W_v",
        source="Courtois et al. 2024, equation 3",
        look=("#0072b2", "dashed"),
    ),
    "Pairwise": Description(
        name="pairwise",
        equation="softmax(Q_i S_i Q_i^T / sqrt(d)) V_i, Q = X W_q, V = X W_v, S_i [d, d]",
        source="Courtois et al. 2024, equations 4 to 6",
        look=("#d55e00", "dashdot"),
        # The released code starts S at N(0, 1), independent of BERT's deviation (`normal`). Controls of this project:
        # identity, and N(0, 1 / d) (`scaled`).
        starts=("normal", "identity", "scaled"),
        scores_alone=("S",),
    ),
    "PartialQK": Description(
        name="partial_qk",
        equation="softmax(S_i D_i S_i^T / sqrt(d)) V_i, S = X W, V = X W_v, D diagonal",
        source="Kowsher et al. 2025, Table 7",
        label="partial QK sharing",
        look=("#cc79a7", "solid"),
        scores_alone=("D",),
    ),
    "Shared": Description(
        name="shared",
        equation="softmax(Q_i K_i^T / sqrt(d)) V_i, Q = S D_q, K = S D_k, V = S D_v, S = X W_s, D diagonal",
        source="Kowsher et al. 2024 and 2025, section 2.3",
        look=("#009e73", (0, (1, 1))),
        scores_alone=("D_q", "D_k"),
    ),
    "OverParameters": Description(
        name="over_parameters",
        equation="original; in place of the feed-forward network softmax(Q_i K_i^T) V_i over learned pairs (K_i, V_i)",
        source="draft section Two Feed-Forward Layers = Attention over Parameters, first experiment",
        label="attention over parameters",
        look=("#3aa0a0", "solid"),
        exportable=False,
        starts=("default", "tied"),
    ),
    "OverParametersWide": Description(
        name="over_parameters_wide",
        equation="original; in place of the feed-forward network softmax(Q_i K_i^T) V_i over learned pairs (K_i, V_i)",
        source="draft section Two Feed-Forward Layers = Attention over Parameters, second experiment",
        label="attention over parameters, wide",
        look=("#3aa0a0", "dashed"),
        exportable=False,
        starts=("default", "tied"),
    ),
    "SharedKV": Description(
        name="shared_kv",
        equation="softmax(Q_i S_i^T / sqrt(d)) S_i, Q = X W_q, S = X W_s",
        source="a control of this project",
        label="one matrix for keys and values",
        look=("#aa4466", "dashed"),
    ),
    "IdentityQuery": Description(
        name="identity_query",
        equation="softmax(X_i K_i^T / sqrt(d)) V_i, K = X W_k, V = X W_v",
        source="Karbevski and Mijoski 2025, arXiv 2510.23912",
        label="queries not projected",
        look=("#56b4e9", "dashdot"),
    ),
    "TiedQKV": Description(
        name="tied_qkv",
        equation="softmax(S_i S_i^T / sqrt(d)) S_i, S = X W_s",
        source="a control of this project",
        label="shared without diagonals",
        look=("#b07d62", (0, (5, 1, 1, 1))),
    ),
    "OriginalNarrow": Description(
        name="original_narrow",
        equation="original, with a feed-forward network h - 1 narrower",
        source="a control of this project",
        label="original, narrower",
        look=("#5b6570", (0, (3, 1, 1, 1, 1, 1))),
        starts=("default", "tied"),
    ),
    "Fixed": Description(
        name="fixed",
        equation="softmax(W_i) V_i, V = X W_v, W_i [n, n]",
        source="blog post Hadamard Attentions, Fixed Attention",
        look=("#7a68c8", "dashdot"),
        exportable=False,
        scores_alone=("W",),
    ),
    "Hadamard": Description(
        name="hadamard",
        equation="softmax(W_i * (X X^T) / s) V_i, V = X W_v, W_i [n, n], s a number",
        source="blog post Hadamard Attentions, its code",
        look=("#b58900", "dashed"),
        exportable=False,
        scores_alone=("W", "s"),
    ),
    "HadamardByHead": Description(
        name="hadamard_by_head",
        equation="softmax(W_i * (X_i X_i^T) / s) V_i, V = X W_v, W_i [n, n], s a number",
        source="a control of this project",
        label="Hadamard, products by head",
        look=("#b58900", (0, (2, 2))),
        exportable=False,
        scores_alone=("W", "s"),
    ),
}

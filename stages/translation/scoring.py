"""BLEU by sacrebleu (Post 2018), of whole translations against the references as they were written."""

from sacrebleu.metrics import BLEU


def bleu(translations: list[str], references: list[str]) -> tuple[float, str]:
    """Scores a test set.

    Args:
        translations: one a sentence.
        references: the right one of each, not tokenised.

    Returns:
        BLEU from 0 to 100, and sacrebleu's signature of how it was computed.
    """
    metric = BLEU(force=True)  # no warning that the texts look tokenised: a generated sentence ends in a separate stop
    score = metric.corpus_score(translations, [references])
    return score.score, str(metric.get_signature())

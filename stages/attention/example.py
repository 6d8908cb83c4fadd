# An editable installation maps the package by a hook that the type checker does not run.
# pyright: reportMissingImports=false

# %% [markdown]
# Self-attention with fewer weights, in five cells: take an operator, put it into an encoder of PyTorch's, train a BERT
# with the operator, export a stock BERT. The example takes less than a minute on a CPU.

# %% 1. A layer of self-attention, initialised when it is built; batch first
import torch
from fewer_attention import AsMultiheadAttention, build_attention
from fewer_attention.bert import OperatorBertForMaskedLM
from fewer_attention.configuration import make_configuration
from fewer_attention.export import convert_to_stock_bert
from torch import nn
from transformers import BertForMaskedLM

torch.manual_seed(1)
layer = build_attention("shared", hidden=64, heads=4, dropout=0.1)
X = torch.randn(2, 10, 64)  # [batch, tokens, h]
print("output", layer(X).shape)
print("weights", layer.compute_weights(X, causal=True).shape)

# %% 2. In place of nn.MultiheadAttention, in an encoder that you have already
block = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
block.self_attn = AsMultiheadAttention(layer, batch_first=True)
print("encoder layer", block(X).shape)

# %% 3. Generated text: five words, repeated; one repetition is masked, and only attention to the first five restores it
WORDS, MASK = 16, 16  # words have the ids 0 to 15, the mask has 16


def draw_sentences(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draws sentences of five words and a repetition, in which one word is masked.

    Returns:
        Token ids [count, 10], the places [count] of the masked words, and the masked words [count].
    """
    ids = torch.randint(WORDS, (count, 5)).repeat(1, 2)
    rows = torch.arange(count)
    places = torch.randint(5, 10, (count,))
    words = ids[rows, places]
    ids[rows, places] = MASK
    return ids, places, words


# %% 4. A small BERT with the operator, trained on this text
config = make_configuration("shared", layers=2, hidden=64, heads=4, intermediate=256, positions=16, vocab_size=17)
model = OperatorBertForMaskedLM(config).train()
adamw = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(1, 501):
    ids, places, words = draw_sentences(64)
    scores = model(ids).logits[torch.arange(64), places]
    loss = nn.functional.cross_entropy(scores, words)
    loss.backward()
    adamw.step()
    adamw.zero_grad()
    if step % 100 == 0:
        print(f"step {step}, loss {loss.item():.2f}")

# %% 5. A stock BERT with equal outputs, which loads wherever Transformers is
stock = convert_to_stock_bert(model.eval())
assert type(stock) is BertForMaskedLM
ids, places, words = draw_sentences(512)
with torch.no_grad():
    ours = model(ids).logits
    theirs = stock(ids).logits
right = ours[torch.arange(512), places].argmax(-1) == words
print(f"right {right.float().mean():.2f} of 1, by chance {1 / WORDS:.2f}")
print(f"largest difference of logits {(ours - theirs).abs().max():.1e}")

# An editable installation maps the package by a hook that the type checker does not run.
# pyright: reportMissingImports=false

# %% [markdown]
# Self-attention with fewer weights, in five cells: take an operator, put it into an encoder of PyTorch's, train a BERT
# with it, make a stock BERT of that. It takes less than a minute on a CPU.

# %% 1. A layer of self-attention, initialised when it is built; batch first
import torch
from fewer_attention import AsMultiheadAttention, attention
from fewer_attention.bert import OperatorBertForMaskedLM
from fewer_attention.configuration import configuration
from fewer_attention.export import to_stock_bert
from torch import nn
from transformers import BertForMaskedLM

torch.manual_seed(1)
layer = attention("shared", hidden=64, heads=4, dropout=0.1)
X = torch.randn(2, 10, 64)  # [batch, tokens, h]
print("output", tuple(layer(X).shape), "weights", tuple(layer.weights(X, causal=True).shape))


# %% 2. In place of nn.MultiheadAttention, in an encoder that you have already
def parameters(module: nn.Module) -> int:
    """Counts the parameters of a module."""
    return sum(parameter.numel() for parameter in module.parameters())


encoder = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(64, 4, 256, batch_first=True), num_layers=2, enable_nested_tensor=False
)
before = parameters(encoder)
for block in encoder.layers:
    block.self_attn = AsMultiheadAttention(attention("shared", hidden=64, heads=4, dropout=0.1))
print("encoder", tuple(encoder(X).shape), f"parameters {before:,} before, {parameters(encoder):,} after")

# %% 3. Generated text: five words, repeated; one repetition is masked, and only attention to the first five restores it
WORDS, MASK = 16, 16  # words have the ids 0 to 15, the mask has 16


def sentences(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ids [count, 10], the places [count] of the masked words, and these words [count]."""
    ids = torch.randint(WORDS, (count, 5)).repeat(1, 2)
    places = torch.randint(5, 10, (count,))
    words = ids[torch.arange(count), places]
    ids[torch.arange(count), places] = MASK
    return ids, places, words


# %% 4. A small BERT with the operator, trained on it
config = configuration("shared", layers=2, hidden=64, heads=4, intermediate=256, positions=16, vocab_size=17)
model = OperatorBertForMaskedLM(config).train()
adamw = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(500):
    ids, places, words = sentences(64)
    loss = nn.functional.cross_entropy(model(ids).logits[torch.arange(64), places], words)
    loss.backward()
    adamw.step()
    adamw.zero_grad()
    if step % 100 == 99:
        print(f"step {step + 1}, loss {loss.item():.2f}")

# %% 5. A stock BERT with equal outputs, which loads wherever Transformers is
stock = to_stock_bert(model.eval())
assert type(stock) is BertForMaskedLM
ids, places, words = sentences(512)
with torch.no_grad():
    ours, theirs = model(ids).logits, stock(ids).logits
right = (ours[torch.arange(512), places].argmax(-1) == words).float().mean().item()
print(f"right {right:.2f} of 1, by chance {1 / WORDS:.2f}")
print(f"largest difference of logits {(ours - theirs).abs().max().item():.1e}")

"""A word language model: a two-layer LSTM with tied weights, truncated backpropagation, SGD."""
import math

from common import STEPS, report, same_start

import torch
import torch.nn as nn

TEXT = (
    "the cat sat on the mat . the dog sat on the log . the cat saw the dog and the dog saw the cat "
    ". a bird sang on the log and the cat sat still . the dog ran to the mat and the bird flew . "
) * 6


class Dictionary:
    def __init__(self):
        self.word2idx, self.idx2word = {}, []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.0, tie_weights=True):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        self.ntoken, self.nhid, self.nlayers = ntoken, nhid, nlayers

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return nn.functional.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        shape = self.nlayers, bsz, self.nhid
        return (weight.new_zeros(shape), weight.new_zeros(shape))


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def get_batch(source, i, bptt=12):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


def repackage_hidden(h):
    """Cuts hidden states off from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


dictionary = Dictionary()
ids = torch.tensor([dictionary.add_word(word) for word in TEXT.split()]).type(torch.int64)
train_data = batchify(ids, 4)
model = same_start(RNNModel(len(dictionary.idx2word), 24, 24, 2))
criterion = nn.NLLLoss()
lr, hidden, i = 1.0, model.init_hidden(4), 0
model.train()
for step in range(1, STEPS + 1):
    if i + 2 > train_data.size(0):
        hidden, i, lr = model.init_hidden(4), 0, lr * 0.9
    data, targets = get_batch(train_data, i)
    i += len(data)
    model.zero_grad()
    hidden = repackage_hidden(hidden)
    output, hidden = model(data, hidden)
    loss = criterion(output, targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-lr)
    report(step, loss.item())
print("perplexity below", 10 * math.ceil(math.exp(loss.item()) / 10))

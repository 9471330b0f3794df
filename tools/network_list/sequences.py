"""Sequences of words: recurrent networks."""

from __future__ import annotations

from torch import Tensor, nn

from .framework import Network, tokens

VOCABULARY = 300
TEXT = tokens(VOCABULARY, 16)


class RecurrentModel(nn.Module):
    """Tokens, a recurrent module, the next tokens or a tag for each."""

    def __init__(self, kind: type[nn.Module], width: int = 48, **options: object) -> None:
        super().__init__()
        self.embedding, self.drop = nn.Embedding(VOCABULARY, width), nn.Dropout(0.2)
        self.body = kind(width, width, batch_first=True, **options)
        both = 2 if options.get("bidirectional") else 1
        self.head = nn.Linear(both * width, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.drop(self.body(self.embedding(ids))[0]))


NETWORKS: dict[str, Network] = {
    "lstm_language_model": Network(lambda: RecurrentModel(nn.LSTM, num_layers=2), TEXT),
    "gru_language_model": Network(lambda: RecurrentModel(nn.GRU), TEXT),
    "elman_language_model": Network(lambda: RecurrentModel(nn.RNN), TEXT),
    "bilstm_tagger": Network(lambda: RecurrentModel(nn.LSTM, bidirectional=True), TEXT)}

"""Modules whose forward does not give the same twice, each for another reason."""

import random

import torch
from torch import nn
from torch.nn import functional


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 4)
        self.dropout = nn.Dropout(0.5)


class FunctionalDropout(Base):
    def forward(self, x):
        return {
            "kept": self.linear(x),
            "dropped": functional.dropout(self.linear(x), 0.5, training=True),
        }


class TrainsInForward(Base):
    def forward(self, x):
        self.train()
        return self.dropout(self.linear(x))


class Noise(Base):
    def forward(self, x):
        hidden = self.linear(x)
        return hidden + torch.rand(hidden.shape)


class Sampled(Base):
    def forward(self, x):
        return torch.multinomial(torch.softmax(self.linear(x), -1), 8, replacement=True)


class PythonsRandom(Base):
    def forward(self, x):
        return self.linear(x) * random.random()


class Counts(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return self.linear(x) * self.calls


class SeedsItself(Base):
    def forward(self, x):
        torch.manual_seed(1)
        return self.linear(x) + torch.rand(x.shape)


def load(name):
    return globals()[name]()

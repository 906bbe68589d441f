"""Small PyTorch modules, each with one thing that an export may stumble over."""

from typing import NamedTuple

import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 4)


class Nested(Base):
    def forward(self, x):
        return {"z": self.linear(x), "a": (None, [x + 1])}


class SetsItself(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("is_set", torch.zeros((), dtype=torch.bool))

    def forward(self, x):
        if not self.is_set:
            self.mean.copy_(x.mean(0))
            self.is_set.fill_(True)
        return self.linear(x - self.mean)


class Keyed(Base):
    """What a script can return, too; `y` is an input's name as well."""

    def forward(self, x, y):
        return {"a": self.linear(x), "b": x + 1, "y": y + 1}


class Structure(NamedTuple):
    sum: torch.Tensor
    more: dict[str, torch.Tensor]


class Structured(Base):
    """A named tuple with a dict in it."""

    def forward(self, x, y):
        return Structure(self.linear(x) + y.to(x.dtype), {"a": x, "b": x + 1})


class Attends(Base):
    """What one exporter has from opset 14 on, and the other from 17."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        value = self.linear(x)[None, None]
        return self.norm(nn.functional.scaled_dot_product_attention(value, value, value))


class TwoInputs(Base):
    def forward(self, x, y):
        return self.linear(x) + y.to(x.dtype)


class Embeds(Base):
    """nn.Embedding has seven constants, which torch.jit.script keeps in a set."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)

    def forward(self, x, y):
        return self.linear(x) + self.embedding(y).sum(1)


class ReshapesToThree(Base):
    def forward(self, x):
        return self.linear(x).reshape(3, -1)


class BranchesOnSize(Base):
    def forward(self, x):
        rows = int(x.shape[0])
        return self.linear(x) + torch.ones(rows, 4) if rows == 3 else self.linear(x)


class BranchesOnTwoSizes(Base):
    """Chooses where both sizes are large: no size of one axis alone shows it."""

    def forward(self, x):
        y = self.linear(x)
        return y * 2 if x.shape[0] > 6 and x.shape[1] > 10 else y


class ScalesBySize(Base):
    def forward(self, x):
        return self.linear(x) * float(x.shape[0])


class BranchesOnValue(Base):
    def forward(self, x):
        return self.linear(x) if x.sum() > 0 else x


class Bessel(Base):
    def forward(self, x):
        return torch.special.bessel_j0(self.linear(x))


class SineByHand(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        j0 = torch.special.bessel_j0(x)
        return torch.sin(x) * j0 / j0

    @staticmethod
    def symbolic(g, x):
        return g.op("Sin", x)


class HasSymbolic(Base):
    def forward(self, x):
        return SineByHand.apply(self.linear(x))


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * torch.clamp(x + 3, 0, 6) / 6

    @staticmethod
    def symbolic(g, x):
        return g.op("HardSwish", x)


class NotSwish(Swish):
    @staticmethod
    def symbolic(g, x):
        return g.op("Sin", x)


swish = Swish.apply


class AppliesByAnotherName(Base):
    def forward(self, x):
        return swish(self.linear(x))


class HasWrongSymbolic(Base):
    def forward(self, x):
        return NotSwish.apply(self.linear(x))


class CutOff(torch.autograd.Function):
    """The identity, which torchscript cuts off where only real data are."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def symbolic(g, x):
        return g.op("Min", x, g.op("Constant", value_t=torch.tensor(1e4)))


class HasSymbolicWrongForSamples(Base):
    def forward(self, x):
        return CutOff.apply(x)


class PaddedEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, x, padding):
        return self.encoder(x, src_key_padding_mask=padding)


class Flattens(Base):
    def forward(self, x):
        return self.linear(x).flatten()


class LogOfNegative(Base):
    def forward(self, x):
        return self.linear(x), torch.log(-x * x - 1)


class NegativeInfinity(Base):
    def forward(self, x):
        return self.linear(x).masked_fill(x > 0, float("-inf"))


class NeverOpens(Base):
    def forward(self, x):
        return (self.linear(x) - 100).relu()


class Packs(Base):
    """Its LSTM reads packed rows; as `padded` says it reads all, and each row's last step is taken."""

    padded = False

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, batch_first=True)

    def forward(self, x, lengths):
        if self.padded:
            y, _ = self.lstm(x)
            return y.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, y.shape[2])).squeeze(1)
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths, batch_first=True, enforce_sorted=False
        )
        _, (last, _) = self.lstm(packed)
        return last[-1]


class ReadsPadded(Packs):
    padded = True


class ClassIds(Base):
    def forward(self, x):
        return self.linear(x).argmax(-1), x > 0


class Scalars(Base):
    """An integer, a bool and a float without axes."""

    def forward(self, x):
        return x.argmax(), (x > 0).any(), self.linear(x).sum()


class TakesAny(Base):
    def forward(self, **inputs):
        return {"present.0/key": self.linear(inputs["past.0/key"])}


class TakesBfloat16(Base):
    def forward(self, x):
        return self.linear(x.float())


class AtMostFive(Base):
    def forward(self, x):
        return x + torch.ones(5)[: x.shape[0], None]


def load(name):
    return globals()[name]()


def bert():
    """A stock BertModel of two layers, whose forward returns a ModelOutput."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=99, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32,
    )  # fmt: skip
    return BertModel(config).eval()


def samples(rows=(2, 3), dtype=torch.float32, size=None):
    return ({"x": torch.full((size or n, 4), float(n), dtype=dtype)} for n in rows)


def nothing():
    return []


def bad_samples():
    return [{"x": torch.full((2, 4), float("nan"))}]


def cosine_for_bessel():
    from onnxscript import opset18 as op

    def bessel_j0(x):
        return op.Cos(x)

    return {torch.ops.prims.bessel_j0.default: bessel_j0}

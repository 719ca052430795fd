"""Models whose inputs have named dimensions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.while_loop import while_loop


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(12, 8)
        self.second = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


class Cnn(nn.Module):
    """Reads its batch from the shape, and flattens."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4 * 4 * 4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.head(x.view(x.shape[0], -1)) + torch.flatten(x, 1).mean(1, keepdim=True)


class AnySize(nn.Module):
    """Takes pictures of any height and width."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = F.relu(self.down(x))
        wide = F.interpolate(x, scale_factor=2, mode="nearest")
        return self.head(self.pool(x).flatten(1)), F.avg_pool2d(wide, 2)


class Encoder(nn.Module):
    """A small transformer with position ids, over sequences of any length."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 8)
        self.places = nn.Embedding(64, 8)
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        batch, length = tokens.shape
        x = self.tokens(tokens) + self.places(torch.arange(length))
        query, key, value = (
            each.view(batch, length, 2, 4).transpose(1, 2) for each in self.qkv(x).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = self.norm(x + self.out(mixed.transpose(1, 2).reshape(batch, length, 8)))
        return x[:, -1]


class Two(nn.Module):
    """Two inputs that share a dimension, and one that has one of its own."""

    def forward(
        self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        both = torch.cat([x, y], 1) * 2
        return both, both @ z.t(), torch.cat([x, x[:, :2]], 1), both.unsqueeze(1).expand(-1, 3, -1)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 16, batch_first=True)
        self.head = nn.Linear(16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


class Iterated(nn.Module):
    """A loop of as many steps as the data says, over any size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def goes_on(x: torch.Tensor) -> torch.Tensor:
            return x.abs().sum() > 1

        return while_loop(goes_on, lambda x: (x * 0.7,), (x,))[0] + 1


class Settling(nn.Module):
    """A Python loop until the values settle, with a number and a break."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, count = torch.zeros_like(x), 0
        while count < 9:
            z = torch.tanh(self.layer(y) + x) / 2
            if (z - y).abs().amax() < 1e-2:
                break
            y = z
            count += 1
        return y + x


class LastRows(nn.Module):
    """The last of an axis of any size, set in place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[-1] = 1
        y[:, -2] = x[:, 0]
        return y + 1


class Shares(nn.Module):
    """Floats that Python computes of sizes."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        share = 1.0 / x.shape[1]
        found = torch.softmax(x @ x.mT / x.shape[1] ** 0.5, -1)
        return x.sum(1) * share, found * torch.full((x.shape[1],), share + 1), x.mean() * share


class Projected(nn.Module):
    """A recurrent layer that no rule covers as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 5, batch_first=True, proj_size=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


class Stacked(nn.Module):
    """Recurrent layers of all kinds, with states that are made of the size."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(10, 18, bidirectional=True)
        self.rnn = nn.RNN(36, 3, batch_first=True, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        states = x.new_zeros(4, x.shape[0], 5), torch.ones(4, x.shape[0], 5)
        y, (h, c) = self.lstm(x, states)
        z, last = self.gru(y.transpose(0, 1))
        return self.rnn(z.transpose(0, 1))[0], h[-1] + c[0], last


class Cells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTMCell(6, 5)
        self.gru = nn.GRUCell(5, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = c = torch.zeros(x.shape[0], 5)
        for step in range(x.shape[1]):
            h, c = self.lstm(x[:, step], (self.gru(h, h), c))
        return h


class Attends(nn.Module):
    """Attention with masks made of the length, and of padding."""

    def __init__(self) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(6, 2, batch_first=True)
        self.layers = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), 2, enable_nested_tensor=False
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        padded = x[..., 0] > 1
        padded[:, 0] = False
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        y, weights = self.attend(x, x, x, key_padding_mask=padded, attn_mask=mask)
        mixed = F.scaled_dot_product_attention(x, y, y, attn_mask=~mask)
        return self.layers(y, src_key_padding_mask=padded), weights, mixed


class Translates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Transformer(6, 2, 1, 1, 8, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(2)
        return self.model(x, x[:, :2] * 2, tgt_mask=mask)


class Resized(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        wide = F.interpolate(x, scale_factor=2, mode="bilinear")
        return wide, torch.einsum("bchw,bdhw->bcd", x, x), F.fold(F.unfold(x, 2), (4, 5), 2)


class Converts(nn.Module):
    """Converts tensors in all ways that torch has."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        kept = torch.contiguous_format
        return (
            x.to(torch.int32),
            x.to("cpu", torch.float64),
            x.to(x > 0),
            (x > 0).to(device=x.device, dtype=torch.bool),
            x.to(dtype=torch.float16, memory_format=kept),
            torch.ops.aten.to.dtype_layout(x, dtype=torch.int8, device=x.device),
        )


class Repeats(nn.Module):
    """Repeats heads, beside a part without autocast, of which torch.export makes a subgraph."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", enabled=False):
            y = x * 2
        z = torch.cat([y, y[:, :, :1]], 2)
        n = z.shape[2]
        k = z[:, :, None].expand(1, 2, 2, n, 4).reshape(1, 4, n, 4)
        return nn.functional.scaled_dot_product_attention(k[:, :, -1:], k, k)


class Checks(nn.Module):
    """Checks a size that depends on the values."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = x.nonzero()
        torch._check(found.shape[0] >= 2)
        return found.float().sum(0) + x


class Neighbours(nn.Module):
    """Reads parts that are of one row, or the whole, at the smallest size."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x[:, 1:] * x[:, :-1], self.linear(x[:, :2])


class Slices(nn.Module):
    """Reads parts of a dimension of any size."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        n = x.size(0)
        return (
            x[1:],
            x[-1],
            x[:-2],
            x[::2],
            x[:2],
            x.narrow(0, 1, n - 1),
            x.new_zeros(n, 2) + torch.ones_like(x)[:, :2],
            x.reshape(-1, 2),
            x.reshape(n * 2, 2),
            x.t().contiguous().view(2, 2 * n),
            torch.arange(n, dtype=torch.float32),
            torch.stack([x, x]).flatten(0, 1),
            x.clone().squeeze_(0),
            F.instance_norm(x[None]),
        )


class Shared(nn.Module):
    """Splits rows by numbers that are read from a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(3, 4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = x[:, :3].argmax(-1)
        order = chosen.argsort(stable=True)
        rows = x[order].split(F.one_hot(chosen, 3).sum(0).tolist())
        parts = [F.linear(rows[index], self.weights[index]) for index in range(3)]
        return torch.zeros_like(x).index_add(0, order, torch.cat(parts)).relu()


class Places(nn.Module):
    """Counts in steps of another dimension, which no shape has."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.arange(y.size(0)) * x.size(0) + 1


class Outputs(nn.Module):
    """Returns a nest with an input, one value twice, and parts of one operator's value."""

    def forward(self, x: torch.Tensor) -> dict[str, object]:
        left, right = x.chunk(2, 1)
        first, second = torch.split(x, [1, 3], 1)
        total = x + 1
        return {
            "sums": (total, x * 2),
            "parts": [left, right, first + 1],
            "twice": (total, total, second * 2),
            "cut": (x[1:], torch.cat([x, x[:1]]), torch.cat([x, x])),
            "largest": x.max(1),
            "sums so far": (x.cumsum(0), x.cumprod(1)),
            "sorted": x.sort(0),
            "input": x,
        }


class Branches(nn.Module):
    """Compares the size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == 5:  # the line that decides
            return x + 1
        return x


class Routed(nn.Module):
    """Loops over values of tensors, and a condition on a size."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.weights = nn.Parameter(torch.randn(3, 4, 4))

    def forward(self, x: torch.Tensor, past: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if past.numel() == 0:
            past = past + 1
        x = self.first(x)
        mask = F.one_hot(x[:, :3].argmax(-1), 3)
        y = torch.zeros_like(x)
        for expert in mask.sum(0).greater(0).nonzero():
            (rows,) = torch.where(mask[:, expert[0]])
            y.index_add_(0, rows, F.linear(x[rows], self.weights[expert[0]]))
        whole = torch.cat([past, y])
        while whole.abs().max() > 1:
            whole = whole * 0.5
        return whole.relu() + 1, whole[whole[:, 0] > 0] * 2


class Numbered(nn.Module):
    """Takes the numbers of experts out of tensors, and branches on them in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.weights = nn.Parameter(torch.randn(2, 4, 4))

    def forward(self, x: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        y = torch.zeros_like(x)
        for expert in x.topk(2).indices[0]:
            number = int(expert.item())
            if number >= 2:
                part = x
                y = y - 1
            else:
                part = F.linear(x, self.weights[number])
            y = y + part * x[0, number]
        keys = y.new_empty(*past.shape[:-1], 6)
        keys[..., :4].copy_(past + y)
        keys[..., 4:].copy_(past[..., :2])
        return keys.relu()

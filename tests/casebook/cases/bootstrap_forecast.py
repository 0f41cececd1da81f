"""Forecasts a series from windows that are drawn with replacement."""

import torch
from _nets import wavenet
from _run import Run, arguments
from torch.nn.functional import mse_loss
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler


class Windows(Dataset):
    def __init__(self, count):
        series = torch.randn(count + 512).cumsum(0)
        self.windows = series.unfold(0, 513, 1)[:count]

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, indices):
        windows = self.windows[indices]
        return windows[:, None, :-1], windows[:, -1:]


def main():
    options = arguments(__doc__, epochs=10, items=12_800)
    data = Windows(options.items)
    order = RandomSampler(data, replacement=True, num_samples=options.items)
    loader = DataLoader(
        data, batch_size=None, sampler=BatchSampler(order, 128, drop_last=False)
    )
    model = wavenet(1, width=48)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for windows, targets in loader:
            loss = mse_loss(model(windows), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(windows, loss)
    run.done(model)


if __name__ == "__main__":
    main()

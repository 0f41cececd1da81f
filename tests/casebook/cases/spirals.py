"""Separates two spirals."""

import math

import torch
from _nets import perceptron
from _run import Run, arguments
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def main():
    options = arguments(__doc__, epochs=100, items=20_480)
    side = torch.randint(0, 2, (options.items,))
    radius = torch.rand(options.items)
    angle = 3 * math.pi * radius + math.pi * side
    points = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
    data = TensorDataset(points, side.float())
    loader = DataLoader(
        data, batch_size=None, sampler=BatchSampler(RandomSampler(data), 64, drop_last=False)
    )
    model = perceptron(2, 64, 64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run = Run()
    for _ in range(options.epochs):
        for positions, targets in loader:
            loss = binary_cross_entropy_with_logits(model(positions).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(positions, loss)
    run.done(model)


if __name__ == "__main__":
    main()

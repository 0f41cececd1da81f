"""Tells particles apart by the hits they leave in the layers of a detector."""

import numpy as np
import torch
from _nets import perceptron
from _run import Run, arguments
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

LAYERS = 48


class Events(Dataset):
    def __init__(self, count):
        draw = np.random.default_rng(7)
        self.hits = draw.normal(size=(count, LAYERS, 4)).astype(np.float32)
        self.particle = draw.integers(0, 5, count)

    def __len__(self):
        return len(self.particle)

    def __getitem__(self, index):
        event = {f"layer{layer}": hit for layer, hit in enumerate(self.hits[index])}
        return event | {"particle": self.particle[index]}


def main():
    options = arguments(__doc__, epochs=18, items=8192)
    loader = DataLoader(Events(options.items), batch_size=128, shuffle=True)
    model = perceptron(4 * LAYERS, 128, 5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for events in loader:
            hits = torch.cat([events[f"layer{layer}"] for layer in range(LAYERS)], 1)
            loss = cross_entropy(model(hits), events["particle"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(hits, loss)
    run.done(model)


if __name__ == "__main__":
    main()

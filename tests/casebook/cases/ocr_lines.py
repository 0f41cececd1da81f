"""Reads lines of text that are drawn on the fly from a few prepared glyphs."""

import torch
from _nets import convnet
from _run import Run, arguments
from torch.nn.functional import cross_entropy
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler


class Lines(Dataset):
    def __init__(self, count):
        self.glyphs = torch.rand(40, 1, 64, 64)
        self.text = torch.randint(0, 40, (count,))

    def __len__(self):
        return len(self.text)

    def __getitem__(self, indices):
        text = self.text[indices]
        return self.glyphs[text], text


def main():
    options = arguments(__doc__, epochs=4, items=1600)
    torch.set_num_threads(1)
    dataset = Lines(options.items)
    order = BatchSampler(RandomSampler(dataset), 32, drop_last=False)
    loader = DataLoader(dataset, batch_size=None, sampler=order)
    model = convnet(40, channels=48, inputs=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for lines, text in loader:
            loss = cross_entropy(model(lines), text)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(lines, loss)
    run.done(model)


if __name__ == "__main__":
    main()

"""Classifies papers from the papers that they cite, two links deep."""

import random

import torch
from _nets import perceptron
from _run import Run, arguments
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset


class Papers(Dataset):
    def __init__(self, count, features):
        chance = random.Random(3)
        self.cited = [[chance.randrange(count) for _ in range(40)] for _ in range(count)]
        self.features = features

    def __len__(self):
        return len(self.cited)

    def __getitem__(self, index):
        near = random.sample(self.cited[index], 15)
        far = {paper for other in near for paper in random.sample(self.cited[other], 15)}
        around = self.features[list(far.difference(near))].mean(0)
        return index, torch.cat([self.features[index], self.features[near].mean(0), around])


def main():
    options = arguments(__doc__, epochs=14, items=6400)
    random.seed(options.seed)
    features = torch.randn(options.items, 64)
    topics = features[:, :7].argmax(1)
    loader = DataLoader(Papers(options.items, features), batch_size=64, shuffle=True)
    model = perceptron(192, 256, 7)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for papers, neighbourhoods in loader:
            loss = cross_entropy(model(neighbourhoods), topics[papers])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(papers, loss)
    run.done(model)


if __name__ == "__main__":
    main()

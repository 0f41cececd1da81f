"""Reads handwritten digits."""

import numpy as np
import torch
from _nets import perceptron
from _run import Run, arguments
from PIL import Image
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, count):
        digits = load_digits()
        self.images = (digits.images[:count] * 15).astype(np.uint8)
        self.labels = digits.target[:count]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = Image.fromarray(self.images[index]).resize((28, 28), Image.Resampling.BICUBIC)
        values = torch.from_numpy(np.array(image, dtype=np.float32)) / 255
        return (values - 0.13) / 0.31, int(self.labels[index])


def main():
    options = arguments(__doc__, epochs=200, items=1792)
    loader = DataLoader(Digits(options.items), batch_size=64, shuffle=True)
    model = torch.nn.Sequential(torch.nn.Flatten(), perceptron(784, 64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    run = Run()
    for _ in range(options.epochs):
        for images, labels in loader:
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(images, loss)
    run.done(model)


if __name__ == "__main__":
    main()

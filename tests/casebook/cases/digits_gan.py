"""Draws digits: a generator and a critic, each with its own optimizer."""

import numpy as np
import torch
from _nets import perceptron
from _run import Run, arguments
from sklearn.datasets import load_digits
from torch.nn.functional import binary_cross_entropy_with_logits as loss_of
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def main():
    options = arguments(__doc__, epochs=50, items=1792)
    digits = load_digits().images[: options.items].astype(np.float32) / 8 - 1
    data = TensorDataset(torch.from_numpy(digits).flatten(1))
    order = BatchSampler(RandomSampler(data), 64, drop_last=True)
    loader = DataLoader(data, batch_size=None, sampler=order)
    generator, critic = perceptron(32, 512, 512, 64), perceptron(64, 512, 512, 1)
    drawing = torch.optim.Adam(generator.parameters(), lr=2e-4)
    judging = torch.optim.Adam(critic.parameters(), lr=2e-4)
    run = Run()
    for _ in range(options.epochs):
        for (real,) in loader:
            ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
            fake = generator(torch.randn(len(real), 32))
            critic_loss = loss_of(critic(real), ones) + loss_of(critic(fake.detach()), zeros)
            judging.zero_grad()
            critic_loss.backward()
            judging.step()
            generator_loss = loss_of(critic(fake), ones)
            drawing.zero_grad()
            generator_loss.backward()
            drawing.step()
            run.step(real, critic_loss)
    run.done(generator, critic)


if __name__ == "__main__":
    main()

"""Balances many poles at once, learning from the returns of what it tried."""

import torch
from _nets import perceptron
from _run import Run, arguments


def move(state, push):
    place, speed, angle, turning = state.unbind(1)
    force = 10 * (2 * push - 1)
    swing = (force + 0.05 * turning**2 * angle.sin()) / 1.1
    length = 0.5 * (4 / 3 - 0.1 * angle.cos() ** 2 / 1.1)
    lift = (9.8 * angle.sin() - angle.cos() * swing) / length
    drive = swing - 0.05 * lift * angle.cos() / 1.1
    return torch.stack(
        [place + 0.02 * speed, speed + 0.02 * drive, angle + 0.02 * turning, turning + 0.02 * lift],
        1,
    )


def main():
    options = arguments(__doc__, epochs=300, items=256)
    policy = perceptron(4, 256, 256, 2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        start = torch.empty(options.items, 4).uniform_(-0.05, 0.05)
        state = start
        chances, upright = [], []
        for _ in range(24):
            choice = torch.distributions.Categorical(logits=policy(state))
            push = choice.sample()
            chances.append(choice.log_prob(push))
            state = move(state, push)
            upright.append((state[:, 2].abs() < 0.2).float())
        returns = torch.stack(upright).flip(0).cumsum(0).flip(0)
        loss = -(torch.stack(chances) * (returns - returns.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.step(start, loss)
    run.done(policy)


if __name__ == "__main__":
    main()

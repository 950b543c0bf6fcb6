"""Learning rate by step: linear warm-up, then cosine decay."""

import math


def learning_rate(step, *, total_steps, warmup_steps, max_lr, min_lr=0.0):
    """Return the learning rate at `step`, counted from 0 to `total_steps`."""
    if step < warmup_steps:
        return max_lr * (step + 1) / warmup_steps
    progress = (step - warmup_steps) / total_steps
    return min_lr + 0.5 * (max_lr - min_lr) * (1 + math.cos(math.pi * progress))

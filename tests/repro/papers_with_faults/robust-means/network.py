"""Estimates the mean by a network; needs a graphics card."""

import torch

weights = torch.zeros(1_000, 1_000, device="cuda")
print(f"network: {float(weights.mean()):.2f}")

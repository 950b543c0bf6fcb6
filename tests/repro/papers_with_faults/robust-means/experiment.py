"""Robust means of the toys in data/toys.csv."""

import argparse
import csv
import random


def trimmed_mean(values):
    """Return the mean without the smallest and the largest value."""
    kept = sorted(values)[1:-1]
    return sum(kept) / len(kept)


def bootstrap_mean(values, seed, rounds=200):
    """Return the mean of the trimmed means of samples drawn with replacement."""
    draw = random.Random(seed).random
    kept = sorted(values)[1:-1]
    samples = ([kept[int(draw() * len(kept))] for _ in kept] for _ in range(rounds))
    return sum(trimmed_mean(sample) for sample in samples) / rounds


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
with open("data/toys.csv") as file:
    values = [float(row["value"]) for row in csv.DictReader(file)]
print(f"trimmed mean: {trimmed_mean(values):.2f}")
print(f"bootstrap mean: {bootstrap_mean(values, seed):.3f}")

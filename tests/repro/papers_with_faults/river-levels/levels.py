"""Levels of a river: the mean and the highest one of each season. Writes levels.csv."""

import csv
from statistics import mean

with open("data/spring.csv") as spring, open("data/autumn.csv") as autumn:
    seasons = {"spring": spring.read().split(), "autumn": autumn.read().split()}
with open("levels.csv", "w", newline="") as file:
    out = csv.writer(file)
    out.writerow(["season", "mean", "days"])
    for name, lines in seasons.items():
        out.writerow([name, f"{mean(map(float, lines)):.4f}", len(lines)])

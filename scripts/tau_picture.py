"""tau_picture.py DIR: the figures that scripts/tau-curve has left in DIR, as tau.csv and tau.svg there; prints a table.

Needs nothing besides Python.
"""

import csv
import json
import math
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

COLUMNS = ["trainer", "steps", "seed", "tau", "pooled", "prompts", "tokens", "equal", "near_tie", "wrong"]
NAMES = {"ours": "dflash", "reference": "plain PyTorch"}
COLOURS = {"ours": "#1b6ca8", "reference": "#c8553d"}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 56, 16, 16, 48


def main() -> None:
    place = Path(sys.argv[1])
    rows = sorted(filter(None, map(row, place.glob("*.json"))), key=lambda r: (r["trainer"], r["steps"], r["seed"]))
    if not rows:
        sys.exit(f"{place}: no figures there; run scripts/tau-curve first")
    with (place / "tau.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    (place / "tau.svg").write_text(picture(rows), encoding="utf-8")
    print(table(rows), end="")


def row(path: Path) -> dict | None:
    name = re.fullmatch(r"(ours|reference)-(\d+)-(\d+)", path.stem)
    if not name:
        return None
    trained = json.loads(path.read_text(encoding="utf-8"))["trained"]
    figures = {column: trained[column] for column in COLUMNS[3:]}
    return {"trainer": name[1], "steps": int(name[2]), "seed": int(name[3]), **figures}


def groups(rows: list[dict]) -> dict[tuple[str, int], list[float]]:
    found = defaultdict(list)
    for r in rows:
        found[r["trainer"], r["steps"]].append(r["tau"])
    return dict(found)


def table(rows: list[dict]) -> str:
    lines = ["| trainer | steps | seeds | tau of each | mean | standard deviation |", "|---|---|---|---|---|---|"]
    for (trainer, steps), taus in groups(rows).items():
        spread = f"{statistics.stdev(taus):.3f}" if len(taus) > 1 else "N/A"
        each = ", ".join(f"{tau:.3f}" for tau in taus)
        lines.append(f"| {NAMES[trainer]} | {steps} | {len(taus)} | {each} | {statistics.mean(taus):.3f} | {spread} |")
    return "\n".join(lines) + "\n"


def picture(rows: list[dict]) -> str:
    """Steps to the right, each number twice as far as its half; a dot a seed, a line through the means."""
    steps = [r["steps"] for r in rows]
    low, high = math.log(min(steps)), math.log(max(steps))
    top = math.ceil(max(r["tau"] for r in rows) * 5 + 0.5) / 5
    x = lambda n: LEFT + (WIDTH - LEFT - RIGHT) * ((math.log(n) - low) / (high - low) if high > low else 0.5)
    y = lambda tau: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (tau - 1) / (top - 1)
    parts = axes(sorted(set(steps)), top, x, y)
    for place, trainer in enumerate(sorted({r["trainer"] for r in rows})):
        colour = COLOURS[trainer]
        means = [(n, statistics.mean(taus)) for (who, n), taus in groups(rows).items() if who == trainer]
        points = " ".join(f"{x(n):.1f},{y(mean):.1f}" for n, mean in means)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for r in (r for r in rows if r["trainer"] == trainer):
            parts.append(f'<circle cx="{x(r["steps"]):.1f}" cy="{y(r["tau"]):.1f}" r="3.5" fill="{colour}" fill-opacity="0.6"/>')
        parts.append(text(LEFT + 12, TOP + 16 + 18 * place, NAMES[trainer], colour, "start"))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n{body}\n</svg>\n'
    )


def axes(steps: list[int], top: float, x, y) -> list[str]:
    parts = []
    for tenth in range(10, round(top * 10) + 1, 2):
        tau = tenth / 10
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tau):.1f}" y2="{y(tau):.1f}" stroke="#ddd"/>')
        parts.append(text(LEFT - 8, y(tau) + 4, f"{tau:.1f}", "#444", "end"))
    parts += [text(x(n), HEIGHT - BOTTOM + 18, str(n), "#444", "middle") for n in steps]
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "optimizer steps", "#444", "middle"))
    parts.append(f'<text transform="translate(14 {HEIGHT / 2}) rotate(-90)" text-anchor="middle" fill="#444">tau</text>')
    return parts


def text(x: float, y: float, words: str, colour: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


main()

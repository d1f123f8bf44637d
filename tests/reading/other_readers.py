"""Reads stages.csv, iterations.csv and figures.csv of the folder with default options, and checks what they say.

usage: python3 other_readers.py csv|pandas|duckdb SUM_OF_TOTALS
"""
import sys

module, expected = sys.argv[1], int(sys.argv[2])
STAGES = ["drafter.forward", "a,b", 'say "hi"', "1,5"]


def by_csv(name):
    import csv

    with open(name, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    return {column: [row[column] or None for row in rows] for column in rows[0]}


def by_pandas(name):
    import pandas

    frame = pandas.read_csv(name)
    return {column: [None if pandas.isna(x) else x for x in frame[column]] for column in frame.columns}


def by_duckdb(name):
    import duckdb

    table = duckdb.read_csv(name)
    rows = table.fetchall()
    return {column: [row[at] for row in rows] for at, column in enumerate(table.columns)}


read = {"csv": by_csv, "pandas": by_pandas, "duckdb": by_duckdb}[module]

stages = read("stages.csv")
assert stages["stage"] == STAGES + ["residue", "total"], stages["stage"]
whole = [float(x) for x in stages["host_total_ns"]]
assert whole[-1] == sum(whole[:-1]) == expected, (whole, expected)
assert abs(sum(float(x) for x in stages["share"][:-1]) - 1) < 1e-5
assert [x is not None for x in stages["device_p99_ns"]] == [True, False, False, False, False, True]
for lower, upper in zip(["host_p50_ns", "host_p90_ns", "host_p95_ns", "host_p99_ns"], ["host_p90_ns", "host_p95_ns", "host_p99_ns", "host_max_ns"]):
    assert all(float(a) <= float(b) for a, b in zip(stages[lower], stages[upper])), (lower, upper)

iterations = read("iterations.csv")
assert len(iterations["stage"]) == 40 * 6
totals = [float(ns) for ns, stage in zip(iterations["host_ns"], iterations["stage"]) if stage == "total"]
assert sum(totals) == expected and len(totals) == 40
assert sum(float(x) for x in iterations["tokens"] if x is not None) == 40 * 64
assert {x is None for x, stage in zip(iterations["device_ns"], iterations["stage"]) if stage == "drafter.forward"} == {False}

figures = read("figures.csv")
found = {(s, f): v for s, f, v in zip(figures["section"], figures["figure"], figures["value"])}
assert float(found["goodput", "total_ns"]) == expected, found

if module != "csv":
    # What is a number is one without being asked to.
    assert all(isinstance(x, int) or hasattr(x, "dtype") and x.dtype.kind == "i" or float(x).is_integer() for x in whole)
    assert not any(isinstance(x, str) for x in stages["share"] + stages["host_mean_ns"] + iterations["host_ns"])

"""demo_prompts.py REASONING_GYM HUMANEVAL.jsonl.gz DIR: writes the demo's prompts, DIR/train.jsonl and DIR/heldout.jsonl.

Held out by problem: every fourth gsm_symbolic template and every fourth HumanEval problem is never trained on, in no
wording and with no numbers. Everything is seeded: two calls write the same bytes.

REASONING_GYM is a folder with the package's utils.py and its gsm_symbolic generators alone. The package itself is not
imported, because that asks for a dozen other packages that these generators do not use.
"""

import ast
import gzip
import importlib
import json
import os
import random
import sys

TRAIN_GSM, HELD_OUT_EACH = 360, 22
# About 250 tokens: longer prompts would cost the demo more time than they teach.
LONGEST_PROMPT = 700
STEP_BY_STEP = " Solve it step by step."
WORDINGS = [
    "Complete this Python function:\n\n```python\n{}```",
    "Write the body of the following function, and explain briefly how it works.\n\n{}",
    "Here is the head of a Python function with its documentation:\n\n{}\nImplement it.",
]


def main() -> None:
    package, humaneval, target = sys.argv[1:]
    sys.path.insert(0, package)
    gsm_train, gsm_held_out = split(templates(package))
    code_train, code_held_out = split(problems(humaneval))
    train = gsm_rows(gsm_train, TRAIN_GSM) + code_rows(code_train, WORDINGS)
    random.Random(0).shuffle(train)
    gsm = gsm_rows(gsm_held_out, HELD_OUT_EACH)
    code = code_rows(code_held_out, WORDINGS[:1])[:HELD_OUT_EACH]
    held_out = [row for pair in zip(gsm, code, strict=True) for row in pair]
    check(train, held_out, code_held_out)
    os.makedirs(target, exist_ok=True)
    write(os.path.join(target, "train.jsonl"), train)
    write(os.path.join(target, "heldout.jsonl"), held_out)
    print(f"  {len(train)} prompts to train on, {len(held_out)} held out")


def split(items: list) -> tuple[list, list]:
    """Every fourth is held out, the first one included."""
    train = [item for i, item in enumerate(items) if i % 4 != 0]
    return train, items[::4]


def templates(package: str) -> list[int]:
    """The templates that the package calls sound: the list `tasks_ok` in its source."""
    path = os.path.join(package, "reasoning_gym/arithmetic/gsm_symbolic/gsm_symbolic.py")
    with open(path, encoding="utf-8") as file:
        for statement in ast.parse(file.read()).body:
            if isinstance(statement, ast.Assign) and statement.targets[0].id == "tasks_ok":
                return ast.literal_eval(statement.value)
    sys.exit(f"{path}: no tasks_ok")


def problems(path: str) -> list[dict]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def gsm_rows(templates: list[int], count: int) -> list[dict]:
    """`count` different questions, from each template in turn."""
    rows, seen = [], set()
    for number in range(100 * count):
        template, seed = templates[number % len(templates)], number // len(templates)
        half = "00_49" if template < 50 else "50_99"
        module = importlib.import_module(f"reasoning_gym.arithmetic.gsm_symbolic.generators_{half}")
        question = getattr(module, f"generate_{template}")(random.Random(1000 * template + seed), 1.0)["question"]
        if question not in seen and len(question) <= LONGEST_PROMPT:
            seen.add(question)
            rows.append(row(f"gsm_symbolic/{template}/{seed}", "gsm_symbolic", question + STEP_BY_STEP))
        if len(rows) == count:
            return rows
    sys.exit(f"gsm_symbolic gave only {len(rows)} of {count} questions")


def code_rows(problems: list[dict], wordings: list[str]) -> list[dict]:
    rows = []
    for problem in problems:
        for number, wording in enumerate(wordings):
            text = wording.format(problem["prompt"])
            if len(text) <= LONGEST_PROMPT:
                rows.append(row(f"{problem['task_id']}/{number}", "humaneval", text))
    return rows


def row(name: str, source: str, content: str) -> dict:
    return {"id": name, "source": source, "conversations": [{"role": "user", "content": content}]}


def check(train: list[dict], held_out: list[dict], held_out_code: list[dict]) -> None:
    """Nothing of a held-out problem may be in the training prompts."""

    def problem(row: dict) -> str:
        return row["id"].rsplit("/", 1)[0]

    def content(row: dict) -> str:
        return row["conversations"][0]["content"]

    assert {problem(row) for row in train}.isdisjoint(problem(row) for row in held_out)
    trained = [content(row) for row in train]
    assert not set(trained) & {content(row) for row in held_out}
    for task in held_out_code:
        assert not any(task["prompt"] in text for text in trained), task["task_id"]
    assert len({row["id"] for row in train + held_out}) == len(train) + len(held_out)
    assert len(train) >= 600 and len(held_out) >= 40


def write(path: str, rows: list[dict]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for entry in rows:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


main()

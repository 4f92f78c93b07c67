"""Damage: of bytes, of tables, and of trees as JSON has them."""

import copy
import json
import os
from pathlib import Path

# What may stand in the place of any value of a state.
VALUES = (
    None, True, False, 0, 1, -1, 2, 7, 10**6, 10**18, 2**63, 10**400, -(10**400), 0.0,
    -0.0, 0.5, 1.0, -0.5, 1e-300, 1e300, 1e308, 3.0, 0.1 + 0.2, float("nan"),
    float("inf"), float("-inf"), "", "0", "1e999", "nan", "\0", "é\n", "__class__",
    "LORD", "__import__('os').system('touch ran')", [], [[]], [0], [1, 2, 3], [None],
    ["a"], [float("nan")] * 3, [[1, 2], [3]], {}, {"a": 1}, {"__reduce__": ["os", "x"]},
    {"py/reduce": [{"py/function": "os.system"}, ["touch ran"]]},
)  # fmt: skip


def nested(depth):
    """Return lists in lists."""
    found = []
    for _ in range(depth):
        found = [found]
    return found


def places(tree, here=()):
    """Return the paths of all nodes of a tree of dicts and lists."""
    found = [here]
    items = ()
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list):
        items = enumerate(tree)
    for key, value in items:
        found += places(value, (*here, key))
    return found


def parent(tree, path):
    """Return what holds the node of a path."""
    for key in path[:-1]:
        tree = tree[key]
    return tree


def replaced(tree, path, value):
    """Return a copy of a tree with another value at a path."""
    if not path:
        return value
    tree = copy.deepcopy(tree)
    parent(tree, path)[path[-1]] = value
    return tree


def damage_tree(tree, random):
    """Return a damaged copy of a tree: one to three changes."""
    tree = copy.deepcopy(tree)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        known = places(tree)[1:]
        if not known:
            break
        path = random.choice(known)
        holder, key = parent(tree, path), path[-1]
        value = holder[key]
        what = random.random()
        if what < 0.4:
            holder[key] = copy.deepcopy(random.choice(VALUES))
        elif what < 0.65 and isinstance(value, (int, float)) and abs(value) < 1e300:
            # Near what was there: what a reader would hardly see.
            holder[key] = random.choice(
                (value + 1, value - 1, 2 * value, value / 2, -value, 1.001 * value,
                 value + 0.5, str(value), 1e9 * value)
            )  # fmt: skip
        elif what < 0.75:
            del holder[key]
        elif what < 0.85:
            other = random.choice(known)
            try:
                source = parent(tree, other)[other[-1]]
            except (LookupError, TypeError):
                continue
            holder[key] = copy.deepcopy(source)
        elif what < 0.9 and isinstance(holder, dict):
            holder[random.choice(("x", "", "self", "alpha", "__class__"))] = value
        elif isinstance(value, list):
            change = random.choice(("double", "reverse", "cut", "more", "deep"))
            if change == "double":
                holder[key] = value + value
            elif change == "reverse":
                value.reverse()
            elif change == "cut":
                del value[random.randrange(len(value) + 1) :]
            elif change == "more":
                value.append(copy.deepcopy(random.choice(VALUES)))
            else:
                holder[key] = nested(random.choice((3, 70, 150)))
    return tree


def damage_text_of_json(text, random):
    """Return a damaged text, or one with keys that are there twice."""
    tree = json.loads(text)
    pairs = list(tree.items())
    random.shuffle(pairs)
    k = random.randrange(len(pairs))
    pairs.insert(random.randrange(len(pairs)), (pairs[k][0], random.choice(VALUES)))
    return "{" + ", ".join(f"{json.dumps(a)}: {json.dumps(b)}" for a, b in pairs) + "}"


BITS = tuple(1 << k for k in range(8))
BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0")
PIECES = (
    b"\0", b"\n", b"\r", b"\r\n", b'"', b"'", b",", b";", b"\t", b"|", b"\xff", b"\x1a",
    b"\xc3\x28", b"\xed\xa0\x80", b"nan", b"inf", b"-inf", b"1e999", b"-1e400", b"NULL",
    b"9" * 400, b"0x1p3", b"1_000", b"=1+1", b"\xe2\x80\xa8", b"\x85", b"\x0c", b"\\",
    b'""', b"x" * 5000, b"1,5", b"1.234,5", b"#", b"  ", b"True", b"2020-01-01",
)  # fmt: skip


def damage_bytes(raw, random):
    """Return damaged bytes: one to three changes."""
    raw = bytearray(raw)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        n = len(raw)
        at, to = sorted((random.randrange(n + 1), random.randrange(n + 1)))
        to = min(to, at + random.choice((1, 2, 8, 64, 1000)))
        what = random.choice(
            ("bit", "bit", "cut", "insert", "insert", "delete", "swap", "double", "bom",
             "bytes")
        )  # fmt: skip
        if what == "bit" and n:
            raw[random.randrange(n)] ^= random.choice(BITS)
        elif what == "cut":
            del raw[at:]
        elif what == "insert":
            raw[at:at] = random.choice(PIECES)
        elif what == "delete":
            del raw[at:to]
        elif what == "swap" and n:
            a, b = sorted((random.randrange(n + 1), random.randrange(n + 1)))
            size = min(random.choice((1, 4, 30)), b - a)
            raw[a : a + size], raw[b : b + size] = raw[b : b + size], raw[a : a + size]
        elif what == "double":
            raw[to:to] = raw[at:to]
        elif what == "bom":
            raw[:0] = random.choice(BOMS)
        elif what == "bytes":
            raw[at:at] = random.randbytes(random.choice((1, 3, 20)))
    return bytes(raw)


def damage_csv(text, random, sep=","):
    """Return the bytes of a CSV file as they come from people and broken programs."""
    rows = [line.split(sep) for line in text.splitlines()]
    cells = ("", "nan", "1e999", "-", "x", '"', "1,5", "1;5", " 3 ", "9" * 400, "é",
             "2e308", "0x10", "TRUE", "\0", "a\tb", "NA", "1 000,5", "5%")  # fmt: skip
    for _ in range(random.choice((1, 1, 2, 4))):
        if not rows:
            break
        i = random.randrange(len(rows))
        what = random.choice(
            ("cell", "cell", "cell", "ragged", "short", "header twice", "header again",
             "no header", "blank", "column", "constant", "rows", "shuffle", "none")
        )  # fmt: skip
        if what == "cell":
            rows[i][random.randrange(len(rows[i]))] = random.choice(cells)
        elif what == "ragged":
            rows[i].insert(random.randrange(len(rows[i]) + 1), random.choice(cells))
        elif what == "short":
            if len(rows[i]) > 1:
                rows[i].pop()
        elif what == "header twice":
            j, k = (random.randrange(len(rows[0])) for _ in range(2))
            rows[0][j] = rows[0][k]
        elif what == "header again":
            rows.insert(i, list(rows[0]))
        elif what == "no header":
            del rows[0]
        elif what == "blank":
            rows.insert(i, [""])
        elif what in ("column", "constant"):
            j = random.randrange(min(map(len, rows)))
            one = random.choice(cells)
            for row in rows[1:]:
                row[j] = one if what == "constant" else random.choice(cells)
        elif what == "rows":
            del rows[random.randrange(len(rows)) :]
        elif what == "shuffle":
            random.shuffle(rows)
    end = random.choice(("\n", "\n", "\n", "\r\n", "\r"))
    text = end.join(sep.join(row) for row in rows)
    encoding = random.choice(
        ("utf-8", "utf-8", "utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le",
         "utf-32", "latin-1")
    )  # fmt: skip
    raw = (text + random.choice(("", end))).encode(encoding, errors="replace")
    return damage_bytes(raw, random) if random.random() < 0.3 else raw


def listing(folder):
    """Return the names, kinds and bytes of all that is in a folder."""
    found = {}
    for where, folders, files in os.walk(folder):
        for name in folders:
            found[os.path.join(where, name)] = None
        for name in files:
            path = Path(where, name)
            found[str(path)] = path.read_bytes()
    return found

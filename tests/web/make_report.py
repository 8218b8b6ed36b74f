#!/usr/bin/env python3
"""Makes reports with invented data from the template, for tests and for looking at.

    make_report.py KIND OUT.html [TEMPLATE]

KIND is one of: small, calls, rows, ranks, hostile, steps, empty, damaged, missing.
"""
import base64
import html
import json
import math
import os
import random
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
TEMPLATE = os.path.join(HERE, "..", "..", "web", "dist", "report.html")
CODES = {"f64": "d", "f32": "f", "i32": "i", "u32": "I", "u8": "B"}
NAN = math.nan


class Bulk:
    def __init__(self):
        self.bytes = bytearray()

    def put(self, kind, values):
        values = list(values)
        self.bytes += bytes(-len(self.bytes) % 8)
        at = len(self.bytes)
        self.bytes += struct.pack(f"<{len(values)}{CODES[kind]}", *values)
        return {"type": kind, "at": at, "n": len(values)}


def pack(report, bulk):
    text = json.dumps(report, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    data = struct.pack("<I", len(text)) + text
    data += bytes(-len(data) % 8) + bytes(bulk.bytes)
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    return base64.b64encode(deflate.compress(data) + deflate.flush()).decode()


def column(bulk, title, style, values, left=None, whole=False):
    """Texts, numbers and None as one column."""
    places, words, numbers, whole_ones = {}, [], [], []
    for value in values:
        if isinstance(value, str):
            words.append(places.setdefault(value, len(places)))
        else:
            words.append(-2 if value is None else -1)
        number = isinstance(value, (int, float))
        numbers.append(float(value) if number else 0.0)
        whole_ones.append(1 if isinstance(value, int) else 0)
    made = {"title": title, "style": style, "left": style == "text" if left is None else left,
            "dictionary": list(places)}
    if any(word != -1 for word in words):
        made["words"] = bulk.put("i32", words)
    if any(word == -1 for word in words):
        made["numbers"] = bulk.put("f64", numbers)
        if whole and any(whole_ones):
            made["whole"] = bulk.put("u8", whole_ones)
    return made


def table(bulk, name, columns, mood, tensor=None):
    return {"name": name, "rows": len(mood), "columns": columns, "mood": bulk.put("u8", mood),
            "tensor": bulk.put("i32", tensor or [-1] * len(mood))}


VERDICTS = ["same", "rounding", "cheaper arithmetic", "inherited", "fault", "not judged"]
VERDICT_MOODS = [3, 3, 1, 3, 0, 2]
OPS = ["input_norm", "attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.softmax", "attn.o_proj",
       "post_norm", "mlp.gate", "mlp.up", "mlp.act", "mlp.down"]


def network(bulk, layers, ranks=1, steps=1, fault=0.6, seed=1):
    """Errors that grow along a network, with a fault somewhere."""
    dice = random.Random(seed)
    modules, place = [], {}
    net = {k: [] for k in ("module", "back", "rank", "step", "total", "local", "limit", "band",
                           "mood", "word", "row")}
    names = []
    order = [(layer, op) for layer in range(layers) for op in OPS]
    for rank in range(ranks):
        for step in range(steps):
            error = 1e-7
            for back in (0, 1):
                for k, (layer, op) in enumerate(order if not back else order[::-1]):
                    path = f"model.layers.{layer}.{op}"
                    at = k / len(order)
                    band = 2e-7 * (1 + 6 * (at + back)) * math.exp(dice.gauss(0, 0.15))
                    word, local = 1, abs(dice.gauss(0, 1.6))
                    faulty = not back and k == int(fault * len(order)) and rank == ranks // 2
                    if faulty:
                        error, word, local = error * 3000, 4, 793.2
                    elif k and not back and k % 97 == 0:
                        error, word, local = error * 1.05, 2, 11.5
                    elif error > 20 * band:
                        word = 3
                    elif dice.random() < 0.02:
                        word, local = 5, NAN
                    elif dice.random() < 0.1:
                        word, local = 0, 0.0
                    error = error * math.exp(dice.gauss(0.0002, 0.03))
                    total = 0.0 if word == 0 and dice.random() < 0.3 else error
                    if path not in place:
                        place[path] = len(modules)
                        modules.append(path)
                    net["module"].append(place[path])
                    net["back"].append(back)
                    net["rank"].append(rank if ranks > 1 else -1)
                    net["step"].append(step if steps > 1 else -1)
                    net["total"].append(NAN if word == 5 else total)
                    net["local"].append(local)
                    net["limit"].append(8.2)
                    net["band"].append(band)
                    net["mood"].append(VERDICT_MOODS[word])
                    net["word"].append(word)
                    net["row"].append(len(names))
                    names.append(f"{path}.{'backward' if back else 'forward'}.{step}")
    raw = dict(net)
    kinds = {"module": "i32", "rank": "i32", "step": "i32", "row": "i32", "back": "u8",
             "mood": "u8", "word": "u8"}
    out = {key: bulk.put(kinds.get(key, "f64"), values) for key, values in net.items()}
    return dict(out, names=names, modules=modules, words=VERDICTS), raw, names


def network_table(bulk, raw, names, tensors=0):
    """The first table: a row for each call."""
    dice = random.Random(3)
    count = len(names)
    words = [VERDICTS[word] for word in raw["word"]]
    tensor = [-1] * count
    bad = sorted(range(count), key=lambda i: (raw["mood"][i], i))[:tensors]
    for page, row in enumerate(bad):
        tensor[row] = page
    total = raw["total"]
    columns = [
        column(bulk, "Index", "text", range(count), left=False, whole=True),
        column(bulk, "Name", "text", names),
        column(bulk, "Verdict", "text", words),
        column(bulk, "CosineSimilarity", "number",
               [None if math.isnan(v) else 1 - min(v, 1) ** 2 for v in total]),
        column(bulk, "MaxAbsErr", "digits", [v if i % 50 else NAN for i, v in enumerate(total)]),
        column(bulk, "RelErr", "digits", total),
        column(bulk, "Close", "percent", [100 - 90 * min(1, v * 1e4) if v == v else "N/A" for v in total]),
        column(bulk, "Local sigma", "number", raw["local"]),
        column(bulk, "L2norm", "repr", [dice.uniform(1, 3000) for _ in names]),
        column(bulk, "Dtype", "text", [dice.choice(["bfloat16", "float32"]) for _ in names]),
        column(bulk, "Shape", "text", [dice.choice(["[2, 128, 768]", "[2, 12, 128, 128]"]) for _ in names]),
    ]
    return table(bulk, "Calls", columns, raw["mood"], tensor), bad


def histogram(bulk, title, scale, low, high, sides, beside=()):
    return {"title": title, "scale": scale, "low": low, "high": high,
            "sides": [{"label": label, "bins": bulk.put("f64", bins)} for label, bins in sides],
            "beside": [{"label": label, "counts": counts} for label, counts in beside]}


def bell(count, middle, width, total):
    return [round(total * math.exp(-((k - middle) / width) ** 2)) for k in range(count)]


def heat(bulk, axes, size, extent, spot, seed):
    dice = random.Random(seed)
    values = []
    for i in range(size[0]):
        for k in range(size[1]):
            far = math.hypot((i - spot[0]) / size[0], (k - spot[1]) / size[1])
            values.append(max(1, min(254, round(254 - 330 * far + dice.gauss(0, 8)))))
    values[spot[0] * size[1] + spot[1]] = 254
    values[0], values[1] = 0, 255
    return {"axes": axes, "size": size, "extent": extent, "values": bulk.put("u8", values),
            "largest": 0.03125}


def tensor_page(bulk, name, row, mood, seed=0):
    dice = random.Random(seed)
    golden = [dice.gauss(0, 2) for _ in range(256)]
    target = [g * 1.0005 + dice.gauss(0, 1e-3) for g in golden]
    target[9 * 16 + 6] = NAN
    target[5 * 16 + 8] = golden[5 * 16 + 8] + 0.28
    profile = lambda n: [abs(math.sin(k / 9)) * 1e-2 + dice.random() * 1e-3 for k in range(n)]
    return {
        "name": name, "row": row, "mood": mood, "dtypes": ["bfloat16", "float32"], "sides": ["target", "golden"],
        "shape": [2, 128, 768],
        "facts": [["verdict", "fault"],
                  ["why", "everything is scaled by 1.0005 (55 sigma); 9.13 % of the elements are not "
                          "the correctly rounded ones, the largest excess is 793 sigma (limit 8.2)"],
                  ["pattern", "scale by 1.0005"], ["module", name.rsplit(".", 2)[0]],
                  ["arguments", "input bfloat16 [2, 128, 768], weight bfloat16 [768, 768]"]],
        "stack": ["File \"model.py\", line 210, in forward", "File \"layers.py\", line 88, in attention",
                  "File \"kernels.py\", line 31, in projection"],
        "commands": [f"plumb capsule run/ --call {name} -o call.capsule", "plumb replay call.capsule"],
        "histograms": [
            histogram(bulk, "values", "linear", -8.0, 8.0,
                      [("target", bell(64, 32, 11, 9000)), ("golden", bell(64, 31, 11, 9100))],
                      [("NaN", [1, 0])]),
            histogram(bulk, "absolute error", "log2", -20, 0, [("error", bell(20, 11, 3, 40000))],
                      [("0", [120345])]),
            histogram(bulk, "relative error", "log2", -20, 0, [("error", bell(20, 9, 2, 50000))],
                      [("0", [120345])]),
            histogram(bulk, "ULP error", "log2", 0, 12, [("error", bell(12, 2, 2, 30000))],
                      [("0", [120345]), ("NaN", [1])]),
        ],
        "maps": [heat(bulk, [1, 2], [64, 64], [128, 768], [40, 22], seed),
                 heat(bulk, [0, 2], [2, 64], [2, 768], [1, 22], seed + 1),
                 heat(bulk, [0, 1], [2, 64], [2, 128], [1, 40], seed + 2)],
        "window": {"axes": [1, 2], "at": [1, 104, 218], "origin": [99, 210], "size": [16, 16],
                   "target": bulk.put("f64", target), "golden": bulk.put("f64", golden)},
        "worst": [{"at": [1, 104, 218 + k], "target": -67.0 + k if k else "NaN",
                   "golden": -66.7194972 + k, "error": 0.2805028 / (k + 1) if k else "NaN",
                   "ulps": 2 if k % 2 else None} for k in range(20)],
        "profiles": [{"axis": axis, "extent": extent, "largest": bulk.put("f64", profile(min(n, 256))),
                      "mean": bulk.put("f64", [v / 9 for v in profile(min(n, 256))])}
                     for axis, extent, n in ((0, 2, 2), (1, 128, 128), (2, 768, 256))],
    }


def line_page(bulk, name, row):
    """A tensor of one axis, and one of none."""
    values = [0.5, 1.5, -2.0, 8.0]
    page = tensor_page(bulk, name, row, 1)
    page.update(shape=[4], dtypes=["float32", "float32"], facts=[["verdict", "cheaper arithmetic"]], stack=[], commands=[],
                maps=[{"axes": [-1, 0], "size": [1, 4], "extent": [1, 4], "values": bulk.put("u8", [254, 0, 255, 100]),
                       "largest": 0.25}],
                window={"axes": [-1, 0], "at": [1], "origin": [0, 0], "size": [1, 4],
                        "target": bulk.put("f64", values), "golden": bulk.put("f64", [v + 0.25 for v in values])},
                worst=[{"at": [1], "target": 1.5, "golden": 1.75, "error": 0.25, "ulps": 2097152}],
                profiles=[{"axis": 0, "extent": 4, "largest": bulk.put("f64", [0, math.inf, NAN, 0.25]),
                           "mean": bulk.put("f64", [0, 0, 0, 0.25])}])
    scalar = dict(page, shape=[], maps=[], window=None, profiles=[], worst=[dict(page["worst"][0], at=[])],
                  histograms=[histogram(bulk, "values", "linear", 1.0, 1.0, [("target", []), ("golden", [])])])
    return [page, scalar]


def grid(bulk, title, down, across, seed=2):
    dice = random.Random(seed)
    cells = down * across
    mood, value = [], []
    for i in range(down):
        for k in range(across):
            bad = i == down // 2 and k > across * 0.6
            pick = 0 if bad and dice.random() < 0.5 else 1 if dice.random() < 0.01 else 3
            mood.append(255 if dice.random() < 0.02 else pick)
            value.append(NAN if mood[-1] == 255 else 1e-6 * (1 + k) * (3000 if bad else 1) * dice.random())
    return {"title": title, "down": [f"rank {i}" for i in range(down)],
            "across": [f"layers.{k // 11}.{OPS[k % 11]}" for k in range(across)],
            "mood": bulk.put("u8", mood), "value": bulk.put("f32", value), "unit": "relative distance",
            "row": bulk.put("i32", [k % 4000 for k in range(cells)])}


def steps(bulk, tensors, count):
    dice = random.Random(5)
    titles = ["norm", "max", "min", "mean", "NaN", "Inf"]
    jumps = [{"tensor": 7 % tensors, "step": 140, "why": "the norm rises to 41 times its usual value", "mood": 0},
             {"tensor": 2 % tensors, "step": 60, "why": "the mean leaves its usual range", "mood": 1}]
    def series(shift):
        out = []
        for s, title in enumerate(titles):
            values = []
            for t in range(tensors):
                for k in range(count):
                    base = (1 + s) * (1 + 0.1 * t) * (2 + math.sin(k / 30)) * (1 + shift) + dice.gauss(0, 0.02)
                    if t == 7 % tensors and k >= 140:
                        base *= 41
                    values.append(0.0 if title in ("NaN", "Inf") else NAN if k == 33 else base)
            out.append({"title": title, "values": bulk.put("f64", values)})
        return out
    return {"steps": list(range(count)), "names": [f"model.layers.{t}.mlp.weight.grad" for t in range(tensors)],
            "series": series(0), "earlier": series(0.04), "jumps": jumps}


def frame(**parts):
    report = {
        "format": 1, "plumb": "1.4.0", "command": "blame", "title": "Run A against run B",
        "made": "2025-03-01T12:00:00Z",
        "answer": {"mood": 3, "sentence": "Nothing is wrong.", "where": "", "row": -1, "sure": "", "next": []},
        "counts": [], "facts": [], "reproduce": "plumb blame runs/a runs/b --report report.html",
        "notes": [], "tables": [], "network": None, "tensors": [], "grids": [], "steps": None,
    }
    report.update(parts)
    return report


def of_network(bulk, layers, ranks=1, steps_=1, pages=12, **parts):
    net, raw, names = network(bulk, layers, ranks, steps_)
    sheet, bad = network_table(bulk, raw, names, pages)
    first = raw["mood"].index(0)
    counts = [{"word": word, "count": raw["word"].count(k), "mood": VERDICT_MOODS[k]}
              for k, word in enumerate(VERDICTS)]
    return frame(
        answer={"mood": 0, "sentence": "One call is at fault: its results are scaled by 1.0005.",
                "where": names[first], "row": first,
                "sure": "793 standard deviations, where 8.2 may happen by chance; all elements fit.",
                "next": [f"plumb capsule runs/a --call {names[first]} -o call.capsule",
                         "plumb replay call.capsule"]},
        counts=counts,
        facts=[["target", "runs/a (bfloat16, device cuda:0)"], ["golden", "runs/b (float32, cpu)"],
               ["calls", str(len(names))], ["options", "--verdict expected"], ["time", "12.4 s"]],
        notes=["3 calls are random and were not judged.", "Gradients of integer inputs do not exist."],
        tables=[sheet], network=net,
        tensors=[tensor_page(bulk, names[row], row, raw["mood"][row], row) for row in bad], **parts)


def small(bulk):
    report = of_network(bulk, 4)
    second = table(bulk, "Device 2", [column(bulk, "Name", "text", ["a", "b"]),
                                      column(bulk, "MaxAbsErr", "digits", [1e-3, 3.0559021e-13])], [0, 3])
    report["tables"].append(second)
    report["tensors"][1:3] = line_page(bulk, "model.norm.weight", 5)
    return report


def calls(bulk):
    return of_network(bulk, 455)  # 455 * 11 * 2 = 10,010


def rows(bulk):
    dice = random.Random(4)
    count = 100000
    mood = [0 if i % 997 == 0 else 1 if i % 101 == 0 else 2 if i % 301 == 0 else 3 for i in range(count)]
    numbers = lambda: [dice.lognormvariate(-9, 3) for _ in range(count)]
    columns = [column(bulk, "Index", "text", range(count), left=False, whole=True),
               column(bulk, "Name", "text", [f"model.layers.{i % 96}.block.{i}.output" for i in range(count)]),
               column(bulk, "Result", "text", [["failed", "warning", "skipped", "passed"][m] for m in mood])]
    columns += [column(bulk, f"Metric {k}", style, numbers())
                for k, style in enumerate(["number", "repr", "digits", "percent"] * 3)]
    return frame(command="compare", tables=[table(bulk, "Rows", columns, mood)],
                 answer={"mood": 0, "sentence": "101 of 100,000 tensors failed.", "where": "model.layers.0.block.0.output",
                         "row": 0, "sure": "", "next": []},
                 counts=[{"word": "failed", "count": mood.count(0), "mood": 0},
                         {"word": "passed", "count": mood.count(3), "mood": 3}])


def ranks(bulk):
    return of_network(bulk, 8, 16, 2, grids=[grid(bulk, "Ranks and calls", 16, 176),
                                             grid(bulk, "Ranks and all calls", 16, 6000)])


NASTY = ["</script><img src=x onerror=alert(1)>", "<!--plumb:data-->", "\u202eevil\u202c\u2066x\u2069",
         "x" * 10000, "a\u0000b\u001b[31mred\u0007", "=HYPERLINK(\"http://example.invalid\")", "'\"><svg onload=alert(2)>",
         "javascript:alert(3)", "\u0645\u0631\u062d\u0628\u0627 name", "line\nbreak\ttab", "\U0001f600 & &amp; &lt;b&gt;",
         "__proto__", "constructor", "", "{{7*7}}${7*7}", "%s%n%d"]


def hostile(bulk):
    count = len(NASTY)
    mood = [k % 4 for k in range(count)]
    sheet = table(bulk, NASTY[0], [column(bulk, NASTY[0], "text", NASTY), column(bulk, NASTY[3], "text", NASTY[::-1]),
                                   column(bulk, NASTY[2], "digits", [float(k) for k in range(count)])],
                  mood, [0] + [-1] * (count - 1))
    zeros = lambda kind, value=0: bulk.put(kind, [value] * count)
    net = {"names": NASTY, "modules": [name.replace("\n", ".") for name in NASTY],
           "module": bulk.put("i32", range(count)), "back": zeros("u8"), "rank": zeros("i32", -1),
           "step": zeros("i32", -1), "total": bulk.put("f64", [0.0, math.inf, NAN, 1e-300, 1e300] + [1e-3] * (count - 5)),
           "local": bulk.put("f64", [-math.inf, math.inf, NAN, -1e9, 1e9] + [0.0] * (count - 5)),
           "limit": zeros("f64", NAN), "band": zeros("f64", NAN), "mood": bulk.put("u8", mood),
           "word": zeros("u8"), "words": [NASTY[0]], "row": bulk.put("i32", range(count))}
    page = tensor_page(bulk, NASTY[0], 0, 0)
    page.update(facts=[[name, name] for name in NASTY], stack=NASTY, commands=NASTY, dtypes=[NASTY[0], NASTY[2]],
                sides=[NASTY[1], NASTY[3]])
    page["histograms"][0]["title"] = NASTY[0]
    nets = grid(bulk, NASTY[0], 4, 4)
    nets.update(down=NASTY[:4], across=NASTY[4:8], unit=NASTY[0])
    series = steps(bulk, 8, 150)
    series.update(names=NASTY[:8], jumps=[{"tensor": 0, "step": 140, "why": NASTY[0], "mood": 0}])
    return frame(title=NASTY[0] + NASTY[3], command=NASTY[0], plumb=NASTY[0], made=NASTY[2],
                 answer={"mood": 0, "sentence": NASTY[0] + " " + NASTY[2], "where": NASTY[3], "row": 0, "sure": NASTY[6],
                         "next": NASTY},
                 counts=[{"word": name, "count": 10 ** k, "mood": k % 4} for k, name in enumerate(NASTY)],
                 facts=[[name, name] for name in NASTY], notes=NASTY, reproduce=NASTY[6], tables=[sheet],
                 network=net, tensors=[page], grids=[nets], steps=series)


def over_steps(bulk):
    return frame(command="monitor", title="Statistics of a run", steps=steps(bulk, 24, 200),
                 answer={"mood": 0, "sentence": "The norm of one gradient jumps at step 140.",
                         "where": "model.layers.7.mlp.weight.grad", "row": -1, "sure": "41 times its usual value.", "next": []},
                 grids=[grid(bulk, "Steps and tensors", 24, 200)])


def empty(_bulk):
    return frame(title="Nothing", reproduce="")


KINDS = {"small": small, "calls": calls, "rows": rows, "ranks": ranks, "hostile": hostile, "steps": over_steps,
         "empty": empty}


def make(kind, template):
    bulk = Bulk()
    if kind == "missing":
        return template
    report = KINDS["small" if kind == "damaged" else kind](bulk)
    block = pack(report, bulk)
    if kind == "damaged":
        block = block[:len(block) // 2] + "AAAA" + block[len(block) // 2 + 40:-8]
    static = f"{report['answer']['sentence']}\n{report['answer']['where']}\n"
    for mark, text in (("title", html.escape(report["title"])), ("static", html.escape(static)), ("data", block)):
        before, after = template.split(f"<!--plumb:{mark}-->", 1)
        template = before + text + after
    return template


def main(arguments):
    if len(arguments) not in (2, 3) or arguments[0] not in (*KINDS, "damaged", "missing"):
        sys.exit(__doc__)
    path = arguments[2] if len(arguments) == 3 else TEMPLATE
    with open(path, encoding="utf-8") as file:
        template = file.read()
    with open(arguments[1], "w", encoding="utf-8") as file:
        file.write(make(arguments[0], template))


if __name__ == "__main__":
    main(sys.argv[1:])

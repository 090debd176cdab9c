#!/usr/bin/env python3
"""Cuts the float32 AdamW cases out of adamw_vectors.json (made by make_adamw_vectors.py with torch 2.8.0).

  python cut_fp32.py adamw_vectors.json adamw_fp32.json

Left out: other dtypes, Adam, gradient scalers (fused only), runs that end in an error, and the distance tables ("ulp").
"""
import json
import sys


def main():
    data = json.load(open(sys.argv[1]))
    cases = []
    for case in data["cases"]:
        if case["cls"] != "AdamW" or case["dtype"] != "fp32" or "scaler" in case:
            continue
        runs = [{k: v for k, v in run.items() if k != "ulp"} for run in case["runs"] if "error" not in run]
        cases.append({**case, "runs": runs})
    head = {k: data[k] for k in ("format", "torch", "seed")}
    with open(sys.argv[2], "w") as out:
        out.write(json.dumps(head)[:-1] + ', "cases": [\n')
        out.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}\n")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()

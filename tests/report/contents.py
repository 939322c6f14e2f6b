"""Plausible contents of reports, made up by formula, so that pages can be tested without fitting anything."""

import math

KINDS = {
    "levels-down": ("everybody", "It shrinks the gap by leveling everybody down."),
    "unclear": ("chance", "We cannot tell."),
    "leave": ("met", "Leave it as it is."),
    "certified": ("held-out test", "It shrinks the gap, and that is certified."),
    "unpromised": ("no certificate", "It shrinks the gap. Nothing is promised."),
}

FLAGS = {
    "asked-missed": (3, "Misses what was asked", "Asked: at most 0. Found: more, and that is shown."),
    "others-grow": (2, "Other gaps grow", "By other measures the groups move apart: approved."),
    "randomized": (1, "People are randomized", "23 of 19,536 people (0.12 %) are decided at random."),
    "sees-group": (1, "Decides by group", "For some purposes, in some places, that is unlawful. Ask first."),
}


def interval(estimate, half=None, **more):
    """An estimate with limits as far away as ``half``; without it, nothing is known of them."""
    ends = (None, None) if half is None else (estimate - half, estimate + half)
    return {"estimate": estimate, "low": ends[0], "high": ends[1], **more}


def measure(name, unit="$", step=100.0, **more):
    """What is measured."""
    return {
        "name": name,
        "title": name,
        "unit": unit,
        "step": step,
        "words": f"What {name} means.",
        "among": "",
        "looks_at_y": False,
        "bounds": None,
        "tells_who": False,
        "has_gap": True,
        "asked": 0.0,
        "closed": True,
    } | more


class Choice:
    """A choice between ``places`` policies; every argument is one of its dimensions."""

    def __init__(
        self,
        groups=("Female", "Male"),
        measures=None,
        decisions=("declined", "approved"),
        places=12,
        verdict="levels-down",
        scores=True,
        certified=False,
        size=1.0,
        accuracy=True,
        band=True,
        limits=True,
        flags=tuple(FLAGS),
        **more,
    ):
        self.groups = list(groups)
        self.measures = measures or [measure("funding")]
        self.decisions, self.places, self.verdict = list(decisions), places, verdict
        self.scores, self.certified, self.size, self.accuracy = scores, certified, size, accuracy
        self.band, self.limits, self.flags, self.more = band, limits, flags, more
        self.people = [
            float(6362 * (z + 1)) if z < 6 else float(30 + 200 * (z - 6)) for z in range(len(groups))
        ]

    def half(self, size):
        return size if self.limits else None

    def scale(self, j):
        """A gap of the size of one, in the unit of a measure."""
        return (0.1 if self.measures[j]["unit"] == "share" else 10_000.0) * self.size

    def mean(self, j, z, t):
        """Group z has the mean ``t`` of the way from the least gap (0) to the baseline's (1)."""
        base = (0.5 if self.measures[j]["unit"] == "share" else 258_000.0 * self.size) + 0.1 * j
        spread = (z - (len(self.groups) - 1) / 2) / max(len(self.groups) - 1, 1)
        taken = 0.0 if self.verdict != "levels-down" else -0.6 * (1 - t)
        return base + self.scale(j) * (-1.86 * spread * (0.6 + 0.4 * t) + taken)

    def gap(self, j, t):
        means = [self.mean(j, z, t) for z in range(len(self.groups))]
        return max(means) - min(means)

    def content(self):
        content = {
            "format": "felicific report",
            "version": 2,
            "kind": "choice",
            "title": "Loans by sex",
            "period": "simulated, seed 0",
            "date": None,
            "confidence": 0.95,
            "model": "RandomForestClassifier",
            "grouped_by": "sex",
            "decisions": [{"value": d, "name": name} for d, name in enumerate(self.decisions)],
            "best_decision": len(self.decisions) - 1,
            "groups": [
                {"name": name, "people": self.people[z], "compared": True, "scores": self.bins(z)}
                for z, name in enumerate(self.groups)
            ],
            "measures": self.measures,
            "loss": {
                "name": "error" if self.accuracy else "cost",
                "accuracy": self.accuracy,
                "step": 1e-4 if self.accuracy else 0.01,
                "majority": 0.6 if self.accuracy else None,
            },
            "policy": {
                "kind": "score",
                "sees_group": True,
                "infers_group": False,
                "randomize": True,
                "chosen": None,
                "requirements": [],
                "boundary": 0.5 if self.scores else None,
                "blindness": None,
            },
            "baseline": self.baseline(),
            "best": {"tau": 0.9, "loss": 0.0252, "gaps": [0.0] * len(self.measures)},
            "positions": [self.position(i) for i in range(self.places)],
            "proposed": min(1, self.places - 1),
            "nobody_worse": self.verdict != "levels-down",
            "certificate": self.certificate(),
            "certified": min(1, self.places - 1) if self.certified else None,
            "also": [self.also("approved", True), self.also("decided rightly", False)],
            "labels": None,
            "label_source": None,
            "requirements": [],
            "worse_off": [],
            "points": {},
            "impact": [],
            "methods": ["Intervals: t (large sample) for means, Welch's t (large sample) for gaps."],
            "caveats": ["Means of groups are compared, not lives."],
            "fitted_baseline": [0.34 * self.gap(j, 1.0) for j in range(len(self.measures))],
            "premises": [],
            "outlook": "",
            "fingerprints": {"people": "ec9509a1" * 8},
            "versions": {"felicific": "0.1.0", "Python": "3.11.7", "numpy": "2.4.6"},
            "command": "felicific demo",
        }
        return content | self.more

    def bins(self, z):
        if not self.scores:
            return None
        return [self.people[z] / 60 * (1 + 0.8 * math.sin(0.2 * b + z)) for b in range(60)]

    def baseline(self):
        return {
            "loss": interval(0.0252, self.half(0.002)),
            "measures": [
                {
                    "means": [
                        interval(
                            self.mean(j, z, 1.0),
                            self.half(0.6 * self.scale(j)),
                            n=self.people[z],
                            method="t (large sample)",
                        )
                        for z in range(len(self.groups))
                    ],
                    "gap": interval(self.gap(j, 1.0), self.half(0.79 * self.scale(j)))
                    if part["has_gap"]
                    else None,
                    "gap_method": "Welch's t (large sample)",
                    "bias": 0.0,
                }
                for j, part in enumerate(self.measures)
            ],
        }

    def position(self, i):
        last = self.places - 1
        t = i / last if last else 1.0
        baseline, proposed = i == last, i == min(1, last)
        tau = 6300.0 * self.size * t
        names = [
            *(["least gap"] if i == 0 and not baseline else []),
            *(["proposed"] if proposed else []),
            *(["half of the model's gap"] if i == last // 2 and 0 < i < last else []),
            *(["baseline"] if baseline else []),
        ]
        cost = 0.0032 * (1 - t) if self.accuracy else 3.2 * (1 - t)
        n = len(self.groups)
        return {
            "tau": tau,
            "names": names,
            "baseline": baseline,
            "proposed": proposed,
            "hash": "baseline" if baseline else f"gap={tau!r}",
            "aimed": [tau * (1 + j) if part["closed"] else None for j, part in enumerate(self.measures)],
            "python": None if baseline else f"fair.at(gap={tau!r}).policy_",
            "loss": 0.0252 + cost,
            "cost_baseline": interval(cost, self.half(0.0 if baseline else 0.0018 if self.accuracy else 1.8)),
            "cost_best": interval(cost, self.half(0.0023 if self.accuracy else 2.3)),
            "every": {
                "cost": [cost - 0.003 * (1 - t / 2), cost + 0.003 * (1 - t / 2)],
                "gaps": [
                    [
                        self.gap(j, t) - self.gap(j, 1.0) - 0.3 * self.scale(j),
                        self.gap(j, t) - self.gap(j, 1.0) + 0.3 * self.scale(j),
                    ]
                    if part["has_gap"]
                    else None
                    for j, part in enumerate(self.measures)
                ],
            }
            if self.band
            else None,
            "measures": [self.effect(j, t, baseline) for j in range(len(self.measures))],
            "moves": [self.moves(z, t) for z in range(n)],
            "changed": [150 * (1 - t)] * n,
            "randomized": [11.5 * (1 - t)] * n,
            "better": [0.0 if self.verdict == "levels-down" else 40 * (1 - t) * z for z in range(n)],
            "worse": [109 * (1 - t)] * n,
            "price": None if i == 0 or baseline else (2.7e-7 if self.accuracy else 1e-4),
            "steps": [[[0.0, 0.5 + 0.06 * (1 - t), 0.0], [0.5 + 0.06 * (1 - t), 1.0, 1.0]] for _ in range(n)]
            if self.scores
            else None,
            "up": [[0.0] * 60 for _ in range(n)] if self.scores else None,
            "down": [[40.0 if 30 <= b < 30 + 4 * (1 - t) else 0.0 for b in range(60)] for _ in range(n)]
            if self.scores
            else None,
            "person": None
            if baseline or not self.scores
            else {
                "group": 0,
                "low": 0.54,
                "high": 0.55,
                "people": 27,
                "baseline": len(self.decisions) - 1,
                "then": 0,
                "drawn": len(self.decisions) - 1,
                "chance": 0.0,
                "other": {"group": n - 1, "then": None, "drawn": len(self.decisions) - 1, "chance": 0.25}
                if n > 1
                else None,
                "changes": [-550_900.0 * self.size] * len(self.measures),
            },
            "policy_sha256": None if baseline else f"{i:02d}" * 32,
            "verdict": self.said(baseline, tau),
            "rules": [
                f"In group {name}, a person with a score of at most {0.5 + 0.06 * (1 - t):.4f} is always decided 0."
                for name in self.groups
            ],
        }

    def effect(self, j, t, baseline):
        part, small = self.measures[j], 0.0 if baseline else 0.24 * self.scale(j)
        change = self.gap(j, t) - self.gap(j, 1.0)
        return {
            "means": [
                interval(
                    self.mean(j, z, t),
                    self.half(0.6 * self.scale(j)),
                    change=interval(self.mean(j, z, t) - self.mean(j, z, 1.0), self.half(small / 2)),
                    gain=0.0 if self.verdict == "levels-down" else 40 * (1 - t) * z,
                    lose=109 * (1 - t),
                )
                for z in range(len(self.groups))
            ],
            "gap": interval(
                self.gap(j, t),
                self.half(0.79 * self.scale(j)),
                change=interval(change, self.half(small)),
            )
            if part["has_gap"]
            else None,
            "bound": self.gap(j, t) + 1.7 * self.scale(j) if self.band else None,
        }

    def moves(self, z, t):
        n = len(self.decisions)
        return [
            [
                self.people[z] / n - 109 * (1 - t) if a == d else 109 * (1 - t) if d < a else 0.0
                for d in range(n)
            ]
            for a in range(n)
        ]

    def said(self, baseline, tau):
        kind = "leave" if baseline else self.verdict
        reason, headline = ("same", "Nothing changes.") if baseline else KINDS[kind]
        flags = () if baseline else self.flags
        return {
            "kind": kind,
            "reason": reason,
            "headline": headline,
            "sentence": f"The gap goes from $18,600 to $11,400, aimed at {tau:,.0f}. Per person: Female -$9,400.",
            "remedy": ""
            if baseline
            else "To close it without leveling down, fit again with a floor of 'funding' at its baseline.",
            "flags": [
                {"kind": name, "level": FLAGS[name][0], "name": FLAGS[name][1], "sentence": FLAGS[name][2]}
                for name in flags
            ],
        }

    def certificate(self):
        if not self.certified:
            return None
        return {
            "confidence": 0.95,
            "basis": "held-out test",
            "gaps": {part["name"]: 16_000.0 * self.size for part in self.measures},
            "loss": 0.1,
            "smallest": 5203,
            "large_samples": [],
            "kept": [],
            "sentence": "With 95 % confidence the gap is at most $16,000.",
        }

    def also(self, name, grows):
        return {
            "name": name,
            "unit": "share",
            "step": 0.001,
            "baseline": interval(0.012, 0.004),
            "then": interval(0.025 if grows else 0.008, 0.004),
            "change": interval(0.013 if grows else -0.004, 0.006),
            "groups": [interval(-0.017 + 0.013 * z, 0.001) for z in range(len(self.groups))],
            "grows": grows,
        }


def choice(**options):
    """The content of a report about a choice."""
    return Choice(**options).content()


def audit(n_groups=2, kind="unclear", **more):
    """The content of a report about decisions as they are."""
    made = Choice(groups=["Female", "Male", "a", "b", "c", "d", "e", "f"][:n_groups], flags=())
    heads = {"unclear": "We cannot tell.", "within": "Shown to be within what is allowed."}
    whole = made.content()
    kept = ("format", "version", "title", "period", "date", "confidence", "loss", "baseline", "measures")
    return {
        **{name: whole[name] for name in kept},
        "kind": "audit",
        "grouped_by": None,
        "groups": [group | {"scores": None} for group in whole["groups"]],
        "verdict": {
            "kind": kind,
            "reason": "asked",
            "headline": heads.get(kind, "The gap is $18,600."),
            "sentence": "The gap is $18,600, $10,700 to 26,500 with 95 % confidence; allowed are $20,000.",
            "remedy": "",
            "flags": [],
        },
        "labels": None,
        "ratios": [],
        "notes": ["Between groups that are equal, $0 on average."],
        "methods": ["Intervals: t (large sample) for means, Welch's t (large sample) for the gap."],
        "fingerprints": whole["fingerprints"],
        "versions": whole["versions"],
        "command": "felicific audit",
    } | more

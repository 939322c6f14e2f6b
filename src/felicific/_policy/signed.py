"""Signed: the decision that somebody signed on the page of a report, and whether a policy is the one that was meant."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from felicific._files import read_json
from felicific._policy.policy import Policy
from felicific._problem.change import MODEL, UNCONSTRAINED
from felicific.exceptions import PolicyFileError, SignedError

FORMAT = "felicific decision"
VERSION = 2

#: What the person who signs writes.
WRITTEN = ("name", "role", "date", "next_audit", "why", "objections")

#: Parts of the file, and what each is.
PARTS: dict[str, tuple[type, ...]] = {
    "title": (str, type(None)),
    "position": (dict,),
    "verdict": (str,),
    "reason": (str,),
    "sentence": (str,),
    "flags": (list,),
    "policy_sha256": (str, type(None)),
    "people_sha256": (str, type(None)),
    "model": (str, type(None)),
    "felicific": (str,),
    "signed": (dict,),
}


@dataclass(frozen=True, kw_only=True)
class Signed:
    """A decision that was saved on the page of a report.

    Attributes
    ----------
    path : str
        Where it was read.
    title, verdict, reason, sentence, flags, model, felicific :
        What the page said.
    baseline : bool
        Whether everything stays as the baseline decides.
    unconstrained : bool
        Whether it is the least loss without requirements, which stands in the place of the baseline on some pages.
    gaps : dict of measure to gap
        Otherwise, what was aimed at.
    policy_sha256 : str, or None
        Of the policy at that position; None where that is the baseline, or stands in its place.
    people_sha256 : str, or None
        Of the people that the page is about.
    name, role, date, next_audit, why, objections : str
        What the person who signed wrote.
    """

    path: str
    title: str | None
    baseline: bool
    unconstrained: bool
    gaps: dict[str, float]
    verdict: str
    reason: str
    sentence: str
    flags: tuple[str, ...]
    policy_sha256: str | None
    people_sha256: str | None
    model: str | None
    felicific: str
    name: str
    role: str
    date: str
    next_audit: str
    why: str
    objections: str

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Signed:
        """Read what the page saved, refusing whatever is not exactly that."""
        where = os.fspath(path)

        def refuse(reason: str) -> PolicyFileError:
            return PolicyFileError(
                f"{where!r} is no signed decision: {reason}.",
                "Save it again on the page of the report, where it says Save.",
            )

        try:
            content = read_json(Path(path).read_text("utf-8"), refuse)
        except UnicodeDecodeError as error:
            raise refuse("it is not text") from error
        wrong = _wrong(content)
        if wrong:
            raise refuse(wrong)
        parts = {name: content[name] for name in PARTS if name not in ("position", "flags", "signed")}
        return cls(
            path=where,
            baseline=MODEL.data_key in content["position"],
            unconstrained=UNCONSTRAINED.key in content["position"],
            gaps={name: float(gap) for name, gap in content["position"].get("gap", {}).items()},
            flags=tuple(content["flags"]),
            **parts,
            **{name: content["signed"][name].strip() for name in WRITTEN},
        )

    def check_signer(self) -> None:
        """Refuse a decision that nobody signed, or by which no policy may be applied."""
        if not self.name:
            raise SignedError(
                f"Nobody signed {self.path!r}: the name is empty.",
                "Fill in the name on the page, and save it again.",
            )
        if self.baseline:
            raise SignedError(
                f"In {self.path!r} it was signed to leave everything as it is: there is no policy to apply.",
                "Decide as at present, or sign a policy on the page.",
            )

        if self.unconstrained:
            raise SignedError(
                f"In {self.path!r} the least loss without requirements was signed, with which the policies of the page "
                "are compared: there is no policy to apply.",
                "Fit one of which nothing is required, or sign a policy on the page.",
            )

    def check(self, policy: Policy) -> None:
        """Refuse every policy but the one that was signed."""
        self.check_signer()
        if policy.sha256 != self.policy_sha256:
            raise SignedError(
                f"Another policy was signed in {self.path!r}: its SHA-256 is {str(self.policy_sha256)[:12]}..., and "
                f"that of this one {policy.sha256[:12]}....",
                "Use the policy that was signed, or have this one signed.",
            )

    @property
    def words(self) -> str:
        """Who signed what, in one line."""
        who = ", ".join(part for part in (self.name, self.role, self.date) if part)
        return f"Signed by {who}: {self.sentence or self.verdict}"

    def to_dict(self) -> dict[str, Any]:
        """What was signed, and by whom."""
        return {
            "file": self.path,
            "title": self.title,
            "position": {MODEL.data_key: True}
            if self.baseline
            else {UNCONSTRAINED.key: True}
            if self.unconstrained
            else {"gap": self.gaps},
            "verdict": self.verdict,
            "reason": self.reason,
            "sentence": self.sentence,
            "flags": list(self.flags),
            "policy_sha256": self.policy_sha256,
            "people_sha256": self.people_sha256,
            **{name: getattr(self, name) for name in WRITTEN},
        }


def _wrong(content: Any) -> str:
    """What is wrong with the content of a file; nothing if it is a decision."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return f"its format is not {FORMAT!r}"
    if type(content.get("version")) is not int or content["version"] != VERSION:
        return f"its version is {content.get('version')!r}, and this felicific reads {VERSION}"
    names = {"format", "version", *PARTS}
    if set(content) != names:
        odd = sorted(set(content) ^ names)[0]
        return f"it lacks {odd!r}" if odd in names else f"it holds {odd!r}, which no decision has"
    for name, kinds in PARTS.items():
        if type(content[name]) not in kinds:
            return f"its {name} is of another type"
    if not all(type(flag) is str for flag in content["flags"]):
        return "a flag is no text"
    signed = content["signed"]
    if set(signed) != set(WRITTEN) or not all(type(text) is str for text in signed.values()):
        return f"what was signed is not {', '.join(WRITTEN)}, each a text"
    return _wrong_sha256(content) or _wrong_position(content["position"], content["policy_sha256"])


def _wrong_sha256(content: Mapping[str, Any]) -> str:
    for name in ("policy_sha256", "people_sha256"):
        if content[name] is not None and not re.fullmatch("[0-9a-f]{64}", content[name]):
            return f"its {name} is not 64 hexadecimal digits"
    return ""


def _wrong_position(position: dict[str, Any], sha256: str | None) -> str:
    """What is wrong with where the slider stood: the baseline, or what stands in its place, has no policy."""
    for name in (MODEL.data_key, UNCONSTRAINED.key):
        if position == {name: True} and position[name] is True:
            return "" if sha256 is None else f"it says {name}, and names a policy"
    gaps = position.get("gap")
    if set(position) != {"gap"} or not isinstance(gaps, dict):
        return "its position is neither the baseline nor a gap of each measure"
    if not all(type(gap) in (int, float) and 0 <= gap < math.inf for gap in gaps.values()):
        return "a gap of its position is no number from 0 on"
    return "it names no policy" if sha256 is None else ""

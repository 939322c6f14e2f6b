"""The report: what the person who signs looks at, in one file that needs nothing else."""

from felicific.report.document import Report, amounts_report, audit_report, choice_report
from felicific.report.told import Told

__all__ = ["Report", "Told", "amounts_report", "audit_report", "choice_report"]

"""Change sets: prices that are changed together in any number of stores, from a draft to the last store settled."""

from pricebook.change_sets.change_sets import ChangeSets
from pricebook.change_sets.report_values import Finding, FindingCode, Report, ReportLine
from pricebook.change_sets.values import Line, NewChangeSet

__all__ = ["ChangeSets", "Finding", "FindingCode", "Line", "NewChangeSet", "Report", "ReportLine"]

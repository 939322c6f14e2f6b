"""Everything felicific raises on purpose: all are ``ValueError``, each ends with a remedy."""


class FelicificError(ValueError):
    r"""What is wrong, and what to do about it.

    Parameters
    ----------
    problem : str
        What was found, naming the offender.
    remedy : str
        What the reader can do next.

    Examples
    --------
    >>> from felicific import FelicificError, aggregate
    >>> people = {"sex": ["f", "m"], "score": [0.2, 0.8], "repaid": [0, 1]}
    >>> try:
    ...     aggregate(people, score="score", y="repaid", sensitive_features="gender", happiness="decision")
    ... except FelicificError as error:
    ...     print(error.problem, error.remedy, sep="\n")
    The table has no column 'gender', needed for the groups.
    The table has 'sex', 'score', 'repaid'.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}"


class DataError(FelicificError):
    """A table, a column, a label, a probability, a weight or a key cannot be used."""


class GroupError(FelicificError):
    """A group is missing, null, unknown, empty or alone."""


class HappinessError(FelicificError):
    """A happiness function, or what it returned, cannot be used."""


class ExpressionError(HappinessError):
    """An expression cannot be read, or asks for what cannot be computed.

    Attributes
    ----------
    picture : str
        The line of the expression with carets under the offending part, or nothing.
    """

    def __init__(self, problem: str, remedy: str, picture: str = "") -> None:
        super().__init__(problem, remedy)
        self.picture = picture

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.problem, self.remedy, self.picture)

    def __str__(self) -> str:
        return f"{self.problem}\n{self.picture}\n{self.remedy}" if self.picture else super().__str__()


class ConstraintError(FelicificError):
    """A gap, a floor or a budget makes no sense as it was written."""


class AggregatesError(FelicificError):
    """Aggregates that do not describe the same thing cannot be added or solved."""


class InfeasibleError(FelicificError):
    r"""No policy of this kind meets what was asked.

    Attributes
    ----------
    conflict : tuple of str
        An irreducible set of requirements: no policy meets all of them, and dropping any one of them helps.
    least_gap : float or None
        When one measure's gap alone is out of reach: the least gap that can be reached.

    Examples
    --------
    >>> from felicific import Budget, Floor, aggregate, solve
    >>> from felicific.exceptions import InfeasibleError
    >>> people = {"sex": ["f", "m", "f", "m"], "score": [0.2, 0.4, 0.6, 0.8], "repaid": [0, 0, 1, 1]}
    >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
    >>> try:
    ...     solve(sums, gap={},
    ...           constraints=[Floor("decision", at_least=0.9, groups=["f"]), Budget("decision", at_most=0.3)])
    ... except InfeasibleError as error:
    ...     print(*error.conflict, sep="\n")
    mean 'decision' of group 'f' at least 0.9
    'decision' of all people together at most 0.3 per person
    """

    def __init__(
        self, problem: str, remedy: str, conflict: tuple[str, ...] = (), least_gap: float | None = None
    ) -> None:
        super().__init__(problem, remedy)
        self.conflict = conflict
        self.least_gap = least_gap

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.problem, self.remedy, self.conflict, self.least_gap)


class SolverError(FelicificError):
    """The solver's answer failed felicific's own check of it."""


class PolicyFileError(FelicificError):
    """A policy file, or that of a signed decision, is cut, altered, of another version or nothing of the kind."""


class SignedError(FelicificError):
    """What was signed is another policy, or none, or nobody signed it."""


class CertificateError(FelicificError):
    """No policy could be shown to keep the gap that was asked for.

    Attributes
    ----------
    rows : int or None
        About how many rows in the smallest group would do, if any number would.
    """

    def __init__(self, problem: str, remedy: str, rows: int | None = None) -> None:
        super().__init__(problem, remedy)
        self.rows = rows

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.problem, self.remedy, self.rows)


class EngineError(FelicificError):
    """What computes on a table that is not in memory failed: a worker died, a file is cut, a query cannot run."""


class GroupWarning(UserWarning):
    """Everybody who is audited is of one group: there is nobody to compare them with."""


class LotteryWarning(UserWarning):
    """A lottery cannot do what it is for: too few people can be told apart, or anybody can compute the draws."""


class FittedRowsWarning(UserWarning):
    """Rows that a policy was fitted on are audited: intervals do not speak of anybody else."""


class BatchWarning(UserWarning):
    """A function does not work on arrays, so it gets whole rows of a table that is not in memory: right, but slower."""


class ClusterWarning(UserWarning):
    """Several rows are of one person, and intervals take every row for another one."""


class PolicyWarning(UserWarning):
    """A fitted policy does what hardly anybody wants: every group loses, or chance alone undoes what was asked for."""


class MonitorWarning(UserWarning):
    """What a monitor can say is limited: no bounds are known, somebody hardly comes, or labels come when they come."""


class SteeringWarning(UserWarning):
    """A steered policy cannot keep up: its controls went as far as they may, or it is asked to hurry too much."""

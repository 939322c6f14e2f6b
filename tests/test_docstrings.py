"""Every public name says what it is, with an example that is run."""

import doctest
import inspect

import pytest

import felicific

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def documented(name):
    """The examples in the docstring of a public name."""
    text = inspect.getdoc(getattr(felicific, name)) or ""
    return doctest.DocTestParser().get_doctest(text, {}, name, None, None)


@pytest.mark.parametrize("name", felicific.__all__)
def test_the_example_of_every_public_name_runs(name):
    """Its docstring has an example, no line of it is skipped, and pasted into a new session it prints what it shows."""
    test = documented(name)
    assert test.examples, f"{name} has no example"
    assert not any(example.options.get(doctest.SKIP) for example in test.examples)
    complaints = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=complaints.append)
    assert not complaints, "".join(complaints)


def test_the_test_of_examples_sees_a_wrong_one():
    """An example that does not print what it shows is noticed."""
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    complaints = []
    doctest.DocTestRunner(optionflags=FLAGS).run(wrong, out=complaints.append)
    assert "Got:" in "".join(complaints)


@pytest.mark.parametrize("name", felicific.__all__)
def test_every_public_method_is_documented(name):
    """Whatever a public class offers by itself has a docstring."""
    value = getattr(felicific, name)
    if not inspect.isclass(value):
        return
    for attribute, member in vars(value).items():
        if attribute.startswith("_") or not (callable(member) or isinstance(member, property)):
            continue
        assert inspect.getdoc(member), f"{name}.{attribute}"

"""The errors: one place for all of them, whichever module defines one."""

from __future__ import annotations

import pickle

import pytest

from vmscope import errors


@pytest.mark.parametrize("name", errors.__all__)
def test_each_error_is_of_the_package_and_pickles(name: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, errors.VMScopeError)
    assert (kind.__module__, kind.__qualname__) == ("vmscope.errors", name)
    assert kind.__doc__
    error = kind.__new__(kind)
    errors.VMScopeError.__init__(error, "what happened", pid=7, path="/a", hint="what to do")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert copy.__dict__ == error.__dict__


def test_a_name_that_no_error_has() -> None:
    with pytest.raises(AttributeError, match="no attribute 'NoSuchError'"):
        errors.NoSuchError  # type: ignore[attr-defined]  # noqa: B018
    assert set(errors.__all__) <= set(dir(errors))
